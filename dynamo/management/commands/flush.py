from __future__ import annotations

from django.core.management.commands import flush

from dynamo.management.migrations import NoDatabase


class Command(NoDatabase, flush.Command):
    help = "Says that there is no relational database; nothing empties the tables."
    instead = (
        "No command empties its tables. For an empty local engine: manage.py localdynamodb stop, "
        "delete var/, manage.py createtables."
    )
