"""The dynamo app."""

from django.apps import AppConfig
from django.conf import settings

from dynamo.client.settings import complete


class DynamoConfig(AppConfig):
    """Completes the settings."""

    name = "dynamo"

    def ready(self) -> None:
        complete(settings)
