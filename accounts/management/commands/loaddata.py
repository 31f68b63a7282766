from __future__ import annotations

from django.core.management.commands import loaddata

from dynamo.management.commands.migrate import NoDatabase


class Command(NoDatabase, loaddata.Command):
    help = "Says that there is no relational database; importusers makes accounts."
    instead = "manage.py importusers makes accounts from a CSV or JSON Lines file."
