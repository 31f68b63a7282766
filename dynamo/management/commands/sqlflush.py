from __future__ import annotations

from django.core.management.commands import sqlflush

from dynamo.management.migrations import NoDatabase


class Command(NoDatabase, sqlflush.Command):
    help = "Says that there is no relational database; nothing empties the tables."
    instead = "No command empties its tables."
