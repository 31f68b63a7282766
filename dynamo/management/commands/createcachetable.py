"""`createcachetable` on a site without a relational database."""

from django.core.management.commands import createcachetable

from dynamo.management.commands.migrate import NothingToMigrate


class Command(NothingToMigrate, createcachetable.Command):
    help = "Says that there is nothing to migrate; createtables creates the tables."
