"""Django's commands for a relational database, on a site that has none, and beside one."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.commands import run
from tests.requests import Requests


@pytest.mark.parametrize(
    "command",
    [
        ["migrate"],
        ["migrate", "--noinput", "--run-syncdb", "--database", "default"],
        ["migrate", "accounts", "zero", "--fake"],
        ["migrate", "--check"],
        ["migrate", "--plan"],
        ["makemigrations"],
        ["makemigrations", "accounts", "--check", "--dry-run", "--empty"],
    ],
    ids=" ".join,
)
def test_a_migration_command_says_that_there_is_nothing_and_names_createtables(
    command: list[str], requests_sent: Requests
) -> None:
    out = StringIO()

    call_command(*command, stdout=out)

    assert out.getvalue().startswith("Nothing to migrate")
    assert "manage.py createtables" in out.getvalue()
    assert requests_sent.operations == []


def test_in_a_project_that_has_a_relational_database_they_are_djangos_own(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(
        "INSTALLED_APPS = ['django.contrib.contenttypes', 'dynamo', 'sequences']\n"
        "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': 'sql'}}\n"
    )

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "django", *arguments, "--settings", "beside"]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
        ).stdout

    assert "Applying contenttypes.0001_initial... OK" in said("migrate")
    assert "Updates database schema" in said("migrate", "--help")


@pytest.mark.parametrize("command", ["makemigrations", "migrate"])
def test_their_help_says_what_they_do_here(command: str) -> None:
    out, _err, code = run(command, "--help")

    assert code == 0
    assert "Says that there is no" in " ".join(out.split())
