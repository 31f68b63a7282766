"""`makemigrations` on a site without a relational database."""

from django.core.management.commands import makemigrations

from dynamo.management.commands.migrate import NothingToMigrate


class Command(NothingToMigrate, makemigrations.Command):
    """Django's, see `NothingToMigrate`."""
