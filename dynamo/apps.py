"""The dynamo app."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings

from dynamo.client.settings import RUNNER, complete
from dynamo.runtime.no_database.base import use_here


class DynamoConfig(AppConfig):
    """Completes the settings. Without a relational database, its use raises a clear error."""

    name = "dynamo"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # This comes before the models of Django's apps, which open a connection.
        use_here()

    def ready(self) -> None:
        complete(settings)
        project: Any = settings
        if not project.is_overridden("TEST_RUNNER"):
            # With Django's runner, tests could reach the tables in use.
            project.TEST_RUNNER = RUNNER
