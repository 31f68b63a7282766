from __future__ import annotations

from django.core.management.commands import inspectdb

from dynamo.management.migrations import NoDatabase


class Command(NoDatabase, inspectdb.Command):
    help = "Says that there is no relational database; the models declare the tables."
    instead = "The models declare its tables; manage.py cloudformation prints them."
