"""The dynamo app: the ground that the others stand on."""

from django.apps import AppConfig


class DynamoConfig(AppConfig):
    """Registers the system checks."""

    name = "dynamo"

    def ready(self) -> None:
        """Make `check --tag dynamodb` known."""
        from dynamo import checks  # noqa: F401 - registers its checks
