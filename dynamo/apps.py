"""The dynamo app, and the defaults of its settings.

DYNAMODB_TABLE_PREFIX       ""        goes before each table's name
DYNAMODB_MAX_CONNECTIONS    64        at least the threads of a server process
DYNAMODB_LEAN               True      False: all requests by botocore
DYNAMODB_PAGE_SECONDS       5.5       of `dynamo.middleware.AvailabilityMiddleware`
DYNAMODB_LOCAL              DEBUG, where the environment names no endpoint
DYNAMODB_LOCAL_DIR          var/ in BASE_DIR, or where the process was started
AWS_REGION                  None      the AWS chain decides
LOG_COMMANDS                False     True: the log says what each command cost
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings

from dynamo.client import addressing


class DynamoConfig(AppConfig):
    """Completes the settings, and registers the system checks."""

    name = "dynamo"

    def ready(self) -> None:
        """Make `check --tag dynamodb` known."""
        from dynamo import checks  # noqa: F401 - registers its checks

        complete(settings)


def complete(settings: Any) -> None:
    """Give `settings` each of the values that it has not."""
    for name, value in _defaults(settings).items():
        if not hasattr(settings, name):
            setattr(settings, name, value)


def _defaults(settings: Any) -> dict[str, Any]:
    return {
        "DYNAMODB_TABLE_PREFIX": "",
        "DYNAMODB_MAX_CONNECTIONS": 64,
        "DYNAMODB_LEAN": True,
        "DYNAMODB_PAGE_SECONDS": 5.5,
        "DYNAMODB_LOCAL": settings.DEBUG and not addressing.configured_endpoint("dynamodb"),
        "DYNAMODB_LOCAL_DIR": Path(getattr(settings, "BASE_DIR", Path.cwd())) / "var",
        "AWS_REGION": None,
        "LOG_COMMANDS": False,
    }
