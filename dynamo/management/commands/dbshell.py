from __future__ import annotations

from django.core.management.commands import dbshell

from dynamo.management.migrations import NoDatabase


class Command(NoDatabase, dbshell.Command):
    help = "Says that there is no relational database; the AWS CLI reads DynamoDB."
    instead = "To look into a table: manage.py shell and the models, or aws dynamodb scan."
