"""What the tutorial shows is what happens. `test_library.py` types it with the installed wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.tutorial import CHAPTERS, files, type_session


@pytest.mark.parametrize("project", CHAPTERS)
def test_the_commands_of_the_tutorial_print_what_it_shows(project: str, tmp_path: Path) -> None:
    told, shown = type_session(project, tmp_path, PYTHONPATH=str(ROOT))

    assert shown == told


@pytest.mark.parametrize("project", CHAPTERS)
def test_the_examples_are_the_tutorials_files(project: str) -> None:
    example = ROOT / "examples" / project
    stored = {
        str(file.relative_to(example)): file.read_text(encoding="utf-8")
        for file in example.rglob("*.*")
        if file.suffix in {".py", ".html"} and file.name != "__init__.py"
    }
    # The console makes these.
    short = {name for name, text in stored.items() if text == "{% extends 'page.html' %}\n"}

    assert files(project) == {name: stored[name] for name in stored.keys() - short}


def test_users_sign_up_in_thirty_lines() -> None:
    found = files("users")
    lines = "".join(
        found[name] for name in ("members/models.py", "members/views.py", "club/urls.py")
    )

    assert len([line for line in lines.splitlines() if line]) <= 30


def test_a_model_with_an_index_is_in_the_admin_in_twenty_lines() -> None:
    lines = files("admin")["members/admin.py"].splitlines()

    assert len([line for line in lines if line]) <= 20
