"""`migrate` and `makemigrations` on a site without a relational database.

In a project with one, they do what Django's commands do.
"""

from django.core.management.base import BaseCommand
from django.core.management.commands import migrate

from dynamo.runtime.no_database.base import has_database


class NothingToMigrate(BaseCommand):
    """A mixin for Django's commands.

    Without a database, the command does nothing and says so.
    """

    requires_system_checks = ()

    def handle(self, *args: object, **options: object) -> None:
        """Exit with code 0, because deployment scripts call these commands on every site."""
        if has_database():
            super().handle(*args, **options)
            return
        if options["verbosity"]:
            self.stdout.write(
                "Nothing to migrate: all data is in DynamoDB. "
                "manage.py createtables creates missing tables."
            )


class Command(NothingToMigrate, migrate.Command):
    pass
