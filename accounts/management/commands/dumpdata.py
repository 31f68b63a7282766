from __future__ import annotations

from django.core.management.commands import dumpdata

from dynamo.management.commands.migrate import NoDatabase


class Command(NoDatabase, dumpdata.Command):
    help = "Says that there is no relational database; listusers lists accounts."
    instead = "manage.py listusers --json prints the accounts; backups are DynamoDB's own."
