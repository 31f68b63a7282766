from __future__ import annotations

from django.contrib.contenttypes.management.commands import remove_stale_contenttypes

from dynamo.management.commands.migrate import NoDatabase


class Command(NoDatabase, remove_stale_contenttypes.Command):
    help = "Says that there is no relational database, and so no content types."
    instead = "No content types are stored."
