"""The settings of the library, and their defaults.

DYNAMODB_TABLE_PREFIX       ""        the beginning of each table's name
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
from types import NoneType

from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured

from dynamo.client import endpoints

#: The default of TEST_RUNNER.
RUNNER = "dynamo.test.Runner"

#: The packages of the library that have models.
APPS = {"accounts", "dynamo", "locks", "outbox", "sequences", "uploads"}

#: The types of each setting.
SETTINGS: dict[str, tuple[type, ...]] = {
    "DYNAMODB_TABLE_PREFIX": (str,),
    "DYNAMODB_MAX_CONNECTIONS": (int,),
    "DYNAMODB_LEAN": (bool,),
    "DYNAMODB_PAGE_SECONDS": (int, float),
    "DYNAMODB_LOCAL": (bool,),
    "DYNAMODB_LOCAL_DIR": (str, Path),
    "AWS_REGION": (str, NoneType),
    "LOG_COMMANDS": (bool,),
}


def complete(settings: LazySettings) -> None:
    """Set the defaults of the settings that the project does not define.

    Raises:
        ImproperlyConfigured: a setting of the project has a wrong type.
    """
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
    for name, kinds in SETTINGS.items():
        if not hasattr(settings, name):
            setattr(settings, name, defaults[name])
        value = getattr(settings, name)
        if not isinstance(value, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise ImproperlyConfigured(f"The setting {name} is {value!r}. It must be {wanted}.")
