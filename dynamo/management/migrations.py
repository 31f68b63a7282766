"""What Django's commands for a database say on a site without a relational one."""

from __future__ import annotations

from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError


class NothingToMigrate(BaseCommand):
    """Goes before one of Django's commands: takes its arguments, does nothing, and says so."""

    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Say it; exit code 0, as a deployment script may call the command by habit."""
        self.stdout.write(
            "Nothing to migrate: all data is in DynamoDB. "
            "manage.py createtables makes the tables that are missing."
        )


class NoDatabase(BaseCommand):
    """Goes before one of Django's commands: takes its arguments, does nothing, and fails.

    `instead` is a sentence on what serves here.
    """

    requires_system_checks = ()
    instead: str

    def handle(self, *args: Any, **options: Any) -> NoReturn:
        """Say it.

        Raises:
            CommandError: always.
        """
        raise CommandError(
            f"There is no relational database: all data is in DynamoDB. {self.instead}"
        )
