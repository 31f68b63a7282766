"""The database engine of a project without a relational database. Every use raises an error.

`DynamoConfig` uses it instead of Django's dummy engine, whose error says that DATABASES is wrong.
"""

from typing import Any, NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import connections
from django.db.backends.dummy import base as djangos

_DJANGOS, _OURS = "django.db.backends.dummy", "dynamo.runtime.no_database"


class NoDatabase(CommandError, ImproperlyConfigured):
    """A command, a model or a transaction of Django needs a relational database."""


def has_database() -> bool:
    """Whether the project has a relational database."""
    return any(options["ENGINE"] not in {_DJANGOS, _OURS} for options in _settings())


def use_here() -> None:
    """Raise a clear error for every use of a relational database, if the project has none."""
    for options in _settings():
        if options["ENGINE"] == _DJANGOS:
            options["ENGINE"] = _OURS


def _settings() -> Any:
    return connections.settings.values()


def _refuse(*_args: object, **_options: object) -> NoReturn:
    raise NoDatabase(
        "There is no relational database: all data is in DynamoDB. Use dynamo.Model instead of "
        "Django's models, dynamo.Transaction instead of transaction.atomic, and createtables, "
        "dumpdata, loaddata and showitems instead of the commands for a database."
    )


class DatabaseOperations(djangos.DatabaseOperations):
    quote_name = _refuse


class DatabaseClient(djangos.DatabaseClient):
    runshell = _refuse


class DatabaseIntrospection(djangos.DatabaseIntrospection):
    get_table_list = get_table_description = _refuse


class DatabaseWrapper(djangos.DatabaseWrapper):
    _cursor = ensure_connection = _commit = _savepoint_commit = _set_autocommit = _refuse
    client_class = DatabaseClient
    introspection_class = DatabaseIntrospection
    ops_class = DatabaseOperations
