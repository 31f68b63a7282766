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
        ["showmigrations"],
        ["showmigrations", "accounts", "--plan"],
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


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["flush"], "localdynamodb stop"),
        (["flush", "--noinput", "--database", "default"], "localdynamodb stop"),
        (["dbshell"], "manage.py shell"),
        (["dbshell", "--", "-c", "SELECT 1"], "manage.py shell"),
        (["inspectdb"], "cloudformation"),
        (["sqlflush"], "No command empties"),
        (["sqlmigrate", "accounts", "0001"], "createtables"),
        (["squashmigrations", "accounts", "0001"], "createtables"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_on_a_database_says_in_one_line_that_there_is_none_and_what_serves(
    command: list[str], told: str, requests_sent: Requests
) -> None:
    out, err, code = run(*command)

    (line,) = err.splitlines()
    assert (out, code) == ("", 1)
    assert line.startswith("CommandError: There is no relational database")
    assert told in line
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
    assert "[X] 0001_initial" in said("showmigrations")
    assert 'CREATE TABLE "django_content_type"' in said("sqlmigrate", "contenttypes", "0001")
    assert "Removes ALL DATA from the database" in said("flush", "--help")
    assert "Updates database schema" in said("migrate", "--help")


@pytest.mark.parametrize("command", ["flush", "migrate"])
def test_their_help_says_what_they_do_here(command: str) -> None:
    out, _err, code = run(command, "--help")

    assert code == 0
    assert "Says that there is no" in " ".join(out.split())
