"""The dynamo app: the ground that the others stand on."""

from django.apps import AppConfig
from django.conf import settings


class DynamoConfig(AppConfig):
    """Completes the settings, and registers the system checks."""

    name = "dynamo"

    def ready(self) -> None:
        """Make `check --tag dynamodb` known."""
        from dynamo import checks, defaults  # noqa: F401 - registers its checks

        defaults.complete(settings)
