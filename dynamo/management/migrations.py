"""What Django's migration commands say on a site without a relational database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand


class NothingToMigrate(BaseCommand):
    """Goes before one of Django's commands: takes its arguments, does nothing, and says so."""

    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Say it; exit code 0, as a deployment script may call the command by habit."""
        self.stdout.write(
            "Nothing to migrate: all data is in DynamoDB. "
            "manage.py createtables makes the tables that are missing."
        )
