"""`migrate` and `makemigrations` on a site without a relational database.

In a project that has one they do what Django's do, without its checks before.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import connections


class _InsteadOfDjangos(BaseCommand):
    requires_system_checks = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Say in the help what it does: Django's, or that there is no database."""
        if _has_database():
            self.help = super().help
        return super().create_parser(prog_name, subcommand, **kwargs)


class NothingToMigrate(_InsteadOfDjangos):
    """Goes before one of Django's commands: takes its arguments, does nothing, and says so."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Say it; exit code 0, as a deployment script may call the command by habit."""
        if _has_database():
            super().handle(*args, **options)
            return
        self.stdout.write(
            "Nothing to migrate: all data is in DynamoDB. "
            "manage.py createtables makes the tables that are missing."
        )


class NoDatabase(_InsteadOfDjangos):
    """Goes before one of Django's commands: takes its arguments, does nothing, and fails.

    `instead` is a sentence on what serves here.
    """

    instead: str

    def handle(self, *args: Any, **options: Any) -> Any:
        """Say it.

        Raises:
            CommandError: there is none.
        """
        if _has_database():
            return super().handle(*args, **options)
        raise CommandError(
            f"There is no relational database: all data is in DynamoDB. {self.instead}"
        )


def _has_database() -> bool:
    # Where none is named, Django puts one there that refuses everything.
    engines = {each["ENGINE"] for each in connections.settings.values()}
    return engines != {"django.db.backends.dummy"}


class Command(NothingToMigrate, migrate.Command):
    help = "Says that there is nothing to migrate; createtables makes the tables."
