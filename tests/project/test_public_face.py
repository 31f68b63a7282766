"""What the site and the examples import of the library: its face, and named extension points."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ("dynamo", "sequences", "locks")
SITE = ("accounts", "invoices", "uploads", "staff", "web", "project")

#: Modules with a role of their own in a Django project, and what is public there.
MODULES = {
    "dynamo.admin": {*import_module("dynamo.admin").__all__, "apps"},
    "dynamo.admin.models": {"LogEntry", "journal_of", "list_entries", "month_of", "record"},
    "dynamo.admin.helpers": {"REASON"},
    "dynamo.auth": {*import_module("dynamo.auth").__all__},
    "dynamo.auth.addresses": {
        *(
            "EMAIL_MAX_LENGTH",
            "INVALID_EMAIL",
            "clean_email",
            "clean_new_email",
            "comparable_domain",
            "comparable_email",
        )
    },
    "dynamo.auth.backends": {"UserBackend"},
    "dynamo.auth.models": {"new_session_epoch"},
    "dynamo.auth.passwords": {"PASSWORD_MAX_LENGTH", "check_new_password", "is_text"},
    "dynamo.auth.usernames": {
        *(
            "INVALID_USERNAME",
            "USERNAME_MAX_LENGTH",
            "as_uuid",
            "check_new_username",
            "clean_new_username",
            "clean_username",
            "comparable_username",
            "in_ascii",
        )
    },
    "dynamo.cache": {"DynamoCache"},
    "dynamo.forms": {"ModelForm"},
    "dynamo.health": {"healthz", "livez"},
    "dynamo.management.base": {
        *("DynamoCommand", "is_confirmed", "positive", "read_line", "unreadable", "up_to")
    },
    "dynamo.management.commands": {"checkunique"},
    "dynamo.middleware": {"as_unavailable", "typed_fields", "unavailable"},
    "dynamo.sessions": {"SessionStore"},
    "sequences.management.base": {"SeriesCheckCommand"},
}
FACE = {name: set(import_module(name).__all__) for name in LIBRARY}
FACE["dynamo"].add("admin")
EXTENSION_POINTS = {
    name: set(import_module(name).__all__)
    for name in (f"{package}.extending" for package in LIBRARY)
}


def imported(file: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import from the library."""
    for statement in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            names = [(statement.module, each.name) for each in statement.names]
        elif isinstance(statement, ast.Import):
            names = [(each.name, "") for each in statement.names]
        else:
            continue
        yield from (each for each in names if each[0].partition(".")[0] in LIBRARY)


@cache
def of_packages(folders: tuple[str, ...]) -> set[tuple[str, str]]:
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return {each for file in files for each in imported(file)}


def test_the_examples_import_only_the_face() -> None:
    allowed = FACE | {
        "dynamo.auth": MODULES["dynamo.auth"],
        "dynamo.auth.forms": {"UserCreationForm"},
        "dynamo.management.base": {"DynamoCommand"},
        "dynamo.test": {"TestCase"},
        "dynamo.views": {"CreateMixin"},
    }
    used = of_packages(("examples",))

    assert used
    assert {(module, name) for module, name in used if name not in allowed.get(module, ())} == set()


def test_the_site_imports_only_the_face_and_the_extension_points() -> None:
    allowed = FACE | EXTENSION_POINTS | MODULES | {"locks": FACE["locks"] | {"extending"}}
    allowed["dynamo"] = FACE["dynamo"] | {"admin"}
    used = of_packages(SITE)

    assert {(module, name) for module, name in used if name not in allowed.get(module, ())} == set()


@pytest.mark.parametrize("module", ["dynamo.extending", "sequences.extending"])
def test_each_extension_point_has_a_user(module: str) -> None:
    assert EXTENSION_POINTS[module] == {name for home, name in of_packages(SITE) if home == module}


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
