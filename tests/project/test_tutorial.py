"""The tutorial, typed as it stands: its files into an empty folder, its commands into a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`([\w/]+\.py)`\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SESSION = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)

CHAPTERS = {"counters": "Counters", "members": "A model with unique attributes"}


def chapter(project: str) -> str:
    """What stands under the chapter's title."""
    return TUTORIAL.split(f"\n## {CHAPTERS[project]}\n")[1].split("\n## ")[0]


def files(project: str) -> dict[str, str]:
    return dict(FILE.findall(chapter(project)))


@pytest.fixture
def folder(tmp_path: Path, project: str) -> Path:
    """A folder with the files of the chapter."""
    for name, text in files(project).items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        for package in file.relative_to(tmp_path).parents[:-1]:
            (tmp_path / package / "__init__.py").touch()
    return tmp_path


def typed(command: str, folder: Path) -> str:
    """What a terminal shows of a command."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "DJANGO_", "DYNAMODB_"))
    }
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    env["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    ).stdout


@pytest.mark.parametrize("project", CHAPTERS)
def test_what_the_tutorial_types_prints_what_it_shows(project: str, folder: Path) -> None:
    [session] = SESSION.findall(chapter(project))
    commands = re.findall(r"^\$ (.+)$", session, re.MULTILINE)

    shown = "".join(f"$ {command}\n{typed(command, folder)}" for command in commands)

    if not shown.endswith("\nStopped.\n"):
        typed("python manage.py localdynamodb stop", folder)
    assert shown == session


@pytest.mark.parametrize("project", CHAPTERS)
def test_the_examples_are_the_tutorials_files(project: str) -> None:
    example = ROOT / "examples" / project
    stored = {
        str(file.relative_to(example)): file.read_text(encoding="utf-8")
        for file in example.rglob("*.py")
        if file.name != "__init__.py"
    }

    assert files(project) == stored
