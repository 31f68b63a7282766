"""`check`: Django's command, where `--tag dynamodb` also checks the engine."""

from typing import Any

from django.core.management.commands import check

from dynamo.tables.checks import TAG


class Command(check.Command):
    """Django's command, but `--tag dynamodb` runs our deployment checks without `--deploy`.

    Django has no checks that run only if their tag is given. The deployment checks of other tags on
    the same command line run as well.
    """

    def handle(self, *app_labels: Any, **options: Any) -> None:
        if TAG in (options["tags"] or []):
            options["deploy"] = True
        super().handle(*app_labels, **options)
