from django.apps import apps
from django.core.management.base import CommandError
from django.core.management.commands import dumpdata

from dynamo.management.commands.migrate import has_database

WHY = "dumpdata cannot read DynamoDB yet. AWS exports tables to S3 and backs them up."


class Command(dumpdata.Command):
    """Django's, which leaves out DynamoDB. It fails if nothing else was asked for."""

    def handle(self, *app_labels: str, **options: object) -> None:
        found = [apps.app_configs.get(label.partition(".")[0]) for label in app_labels]
        has_rows = any(app is None or any(app.get_models()) for app in found)
        if not has_database() or (found and not has_rows):
            raise CommandError(WHY)
        self.stderr.write(WHY)
        super().handle(*app_labels, **options)
