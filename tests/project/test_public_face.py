"""The site and the examples import from the library what docs/stable.md names, and nothing else."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.commands import ROOT

LIBRARY = ("accounts", "dynamo", "locks", "outbox", "sequences", "uploads")
SITE = ("invoices", "staff", "project")
STABLE = (ROOT / "docs" / "stable.md").read_text(encoding="utf-8")


def imported(file: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import from the library."""
    for statement in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            names = [(statement.module, name.name) for name in statement.names]
        elif isinstance(statement, ast.Import):
            names = [(name.name, "") for name in statement.names]
        else:
            continue
        yield from (name for name in names if name[0].partition(".")[0] in LIBRARY)


@cache
def of_packages(folders: tuple[str, ...]) -> set[tuple[str, str]]:
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return {item for file in files for item in imported(file)}


def is_stable(module: str, name: str, text: str = STABLE) -> bool:
    """Whether the page names the module, and the name is one of its public ones."""
    if f"`{module}.{name}" in text:
        return True
    public = getattr(import_module(module), "__all__", None)
    is_public = not name.startswith("_") if public is None else name in public
    return is_public and (f"`{module}`" in text or f"`{module}." in text)


@pytest.mark.parametrize(
    ("folders", "text"),
    [(SITE, STABLE), (("examples",), STABLE.partition("\n## Building blocks\n")[0])],
    ids=["site", "examples"],
)
def test_only_what_is_stable_is_imported(folders: tuple[str, ...], text: str) -> None:
    used = of_packages(folders)

    assert used
    assert {item for item in used if not is_stable(*item, text)} == set()


def test_each_building_block_has_a_user() -> None:
    section = STABLE.partition("\n## Building blocks\n")[2].partition("\n## ")[0]
    listed = {
        (module, name)
        for module, names in re.findall(r"^\| `([\w.]+)` \| (.+) \|$", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }

    assert listed
    assert listed - of_packages(SITE) == set()


def test_importing_a_package_of_the_library_loads_nothing_else() -> None:
    program = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
before = {{*sys.modules}}
import {", ".join(LIBRARY)}
print(*sorted({{*sys.modules}} - before))
"""
    command = [sys.executable, "-I", "-S", "-c", program]

    assert subprocess.check_output(command, text=True).split() == sorted(LIBRARY)
