from __future__ import annotations

from django.core.management.commands import squashmigrations

from dynamo.management.migrations import NoDatabase


class Command(NoDatabase, squashmigrations.Command):
    help = "Says that there is no relational database; createtables makes the tables."
    instead = "manage.py createtables makes the tables that are missing."
