"""Django's commands for a relational database, on a site that has none."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

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
    "options", [[], ["--noinput", "--username", "ann", "--email", "ann@example.com"]], ids=" ".join
)
def test_createsuperuser_names_the_command_that_makes_operators(
    options: list[str], requests_sent: Requests
) -> None:
    with pytest.raises(CommandError, match="createuser --staff"):
        call_command("createsuperuser", *options)

    assert requests_sent.operations == []
