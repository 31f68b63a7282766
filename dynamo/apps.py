"""The dynamo app, and the defaults of its settings.

DYNAMODB_TABLE_PREFIX       ""        goes before each table's name
DYNAMODB_MAX_CONNECTIONS    64        at least the threads of a server process
DYNAMODB_LEAN               True      False: all requests go through botocore
DYNAMODB_PAGE_SECONDS       5.5       for `dynamo.middleware.AvailabilityMiddleware`
DYNAMODB_LOCAL              DEBUG, if the environment names no endpoint
DYNAMODB_LOCAL_DIR          var/ in BASE_DIR, or in the current directory
AWS_REGION                  the variable AWS_REGION, which botocore does not read, or None
LOG_COMMANDS                False     True: log what each command cost
"""

import os
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings

from dynamo.client import endpoints


class DynamoConfig(AppConfig):
    """Registers the system checks and completes the settings."""

    name = "dynamo"

    def ready(self) -> None:

        complete(settings)


def complete(settings: Any) -> None:
    """Set the defaults of the settings that the project does not define."""
    defaults = {
        "DYNAMODB_TABLE_PREFIX": "",
        "DYNAMODB_MAX_CONNECTIONS": 64,
        "DYNAMODB_LEAN": True,
        "DYNAMODB_PAGE_SECONDS": 5.5,
        "DYNAMODB_LOCAL": settings.DEBUG and not endpoints.configured_endpoint("dynamodb"),
        "DYNAMODB_LOCAL_DIR": Path(getattr(settings, "BASE_DIR", Path.cwd())) / "var",
        "AWS_REGION": os.environ.get("AWS_REGION"),
        "LOG_COMMANDS": False,
    }
    for name, value in defaults.items():
        if not hasattr(settings, name):
            setattr(settings, name, value)
