"""System checks of the tables, the engine and the commands, under the tag `dynamodb`.

All but E007, E008, E015, E016, W003, W005, W006, W008 and W009 need a connection, so a plain
`check`, `runserver` and other commands leave them out, as they do Django's deployment checks.
`check --deploy` and `check --tag dynamodb` run them.

    dynamo.E001   a table is missing
    dynamo.E002   a table or an index has another key
    dynamo.E003   the engine has no transactions
    dynamo.E004   the engine ignores client request tokens
    dynamo.E005   DynamoDB did not answer, or refused: an address, credentials, rights
    dynamo.E006   an index is missing or is being built
    dynamo.E007   two models of one table disagree
    dynamo.E008   a cache, or the cache of sessions, is wrongly configured
    dynamo.E015   a Reference names no model, or one whose key is not a single text
    dynamo.E016   USE_TZ is off, and a model has times
    dynamo.W001   a table has no TTL
    dynamo.W002   a table has no point-in-time recovery
    dynamo.W003   an app before `dynamo` replaces one of its commands
    dynamo.W005   a package of the project hides one of the library
    dynamo.I001   DynamoDB is another engine than AWS's, and this cannot be verified
    dynamo.W006   an overridden `save` or `create`, or a receiver of a model's signal, is not called
    dynamo.W007   the engine refuses queries of an index with several partition or sort attributes
    dynamo.W008   there is no such setting
    dynamo.W009   tests can write to the tables in use
    dynamo.W004   some of the items that a table returns first are damaged, or could not be read
"""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import global_settings, settings
from django.core.cache import caches
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.core.management import find_commands, get_commands
from django.db.models import signals
from django.utils.module_loading import import_string
from pynamodb.attributes import UTCDateTimeAttribute

from dynamo.cache import DynamoCache
from dynamo.cache.items import CacheItem
from dynamo.client.endpoints import configured_endpoint, is_loopback
from dynamo.client.plain import PlainModel, all_models
from dynamo.client.sending import send
from dynamo.client.settings import APPS, RUNNER, SETTINGS
from dynamo.exceptions import (
    DynamoError,
    Rejected,
    TableMismatch,
    TableMissing,
    TransactionCancelled,
)
from dynamo.model.base import Model
from dynamo.runtime.no_database.base import has_database
from dynamo.tables.definitions import (
    RECOVERY,
    TTL,
    UNKNOWN_OPERATION,
    Index,
    Table,
    all_tables,
    features_of,
    verify,
)
from dynamo.wire.attributes import DateTimeAttribute, nearest
from dynamo.wire.types import Item

TAG = "dynamodb"

#: The signals that Django's models send.
_SIGNALS = "pre_init post_init pre_save post_save pre_delete post_delete m2m_changed".split()
#: Methods of a model, and the operations that do not call them.
_CALLERS = {
    "save": "create and change",
    "create": "forms, save and create_many",
    "from_db": "reads",
}

#: The number of items of a table that are read. Guard items are counted as well.
SAMPLE = 100

_VALUES = {"S": {"S": "0"}, "N": {"N": "0"}, "B": {"B": b"0"}}
_HOSTS_OF_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_WARNINGS = {TTL: "W001", RECOVERY: "W002"}

#: What to do about each finding.
_HINTS = {
    "E001": "Run manage.py createtables.",
    "E002": "Keys cannot be changed. For an index, use another name; for a table, another "
    "DYNAMODB_TABLE_PREFIX, or move its items elsewhere.",
    "E003": "ScyllaDB Alternator is such an engine; use AWS, dynoxide or DynamoDB Local.",
    "E004": "moto is such an engine; use AWS, dynoxide or DynamoDB Local.",
    "E006": "Run manage.py createtables: it creates indexes and waits for them.",
    "E016": "Remove USE_TZ from the settings. In templates and forms, times are in TIME_ZONE.",
    "W001": "Run manage.py createtables, which also completes existing tables.",
    "W002": "Run manage.py createtables, which also completes existing tables.",
    "I001": "Run this library's tests on the engine: docs/deployment.md, Without AWS.",
    "W003": "Put dynamo first.",
    "W005": "Rename your package, unless you meant to replace that of the library.",
    "W007": "dynoxide is such an engine. Without it, the local engine is ministack (extra local).",
    "W006": "Put rules into clean(), values that follow from others into a property, and further "
    "writes into a function that calls create(…, write=write).",
    "W009": f"Derive it from {RUNNER}, or leave it out.",
    "W004": "Run manage.py checkitems APP.MODEL: it lists all and can delete one.",
}


#: The id of each finding, and its text.
Findings = Iterator[tuple[str, str]]
_Check = Callable[..., list[CheckMessage]]


def _check(*tags: str, deploy: bool = False) -> Callable[[Callable[[], Findings]], _Check]:
    """Register a function as a check under `tags`. Equal findings are shown once."""

    def registered(find: Callable[[], Findings]) -> _Check:
        @register(*tags, deploy=deploy)
        def check(*_args: object, **_options: object) -> list[CheckMessage]:
            return [_message(*finding) for finding in dict.fromkeys(find())]

        return check

    return registered


def _message(number: str, text: str) -> CheckMessage:
    kind = {"E": Error, "W": Warning, "I": Info}[number[0]]
    return kind(text, _HINTS.get(number), id=f"dynamo.{number}")


@_check(TAG, deploy=True)
def check_dynamodb() -> Findings:
    """Check the tables, some of their items, and the engine.

    Costs 4 requests and at most 128 read units for each table, and 3 requests for the engine.
    """
    if check_declarations():
        return
    url = configured_endpoint("dynamodb")
    if url and not is_loopback(url) and not (urlsplit(url).hostname or "").endswith(_HOSTS_OF_AWS):
        yield (
            "I001",
            f"{url} is not AWS. Tables, transactions and request tokens are checked. It cannot be "
            "verified that simultaneous transactions are isolated, that a crash loses no write, "
            "or that the capacity suffices.",
        )
    try:
        yield from _check_tables()
    except DynamoError as error:
        yield "E005", " ".join(str(error).split())


@_check(TAG)
def check_settings() -> Findings:
    """Check that no setting has a misspelled name of the library's. Costs no request."""
    # Django's own settings are left out, because comparing takes time and every command runs this.
    for name in sorted({*dir(settings)} - {*dir(global_settings)} - SETTINGS.keys()):
        near = nearest(name, SETTINGS)
        if near or name.startswith("DYNAMODB_"):
            advice = f"Did you mean {near}?" if near else f"There are {', '.join(SETTINGS)}."
            yield "W008", f"There is no setting {name}. {advice}"


@_check(TAG)
def check_runner() -> Findings:
    """Check that `manage.py test` cannot reach the tables in use. Costs no request."""
    name = settings.TEST_RUNNER
    if name == RUNNER:
        return
    # In production, a test runner that is installed only for development is missing.
    with suppress(ImportError):
        bases = import_string(name).__mro__
        if RUNNER not in {f"{base.__module__}.{base.__name__}" for base in bases}:
            yield "W009", f"With the TEST_RUNNER {name}, tests write to the tables in use."


@_check(Tags.models, TAG)
def check_declarations() -> Findings:
    """Check that the models of each table agree. Costs no request."""
    try:
        all_tables()
    except ImproperlyConfigured as error:
        yield "E007", str(error)


@_check(Tags.models, TAG)
def check_references() -> Findings:
    """Check that each `Reference` names a model. Costs no request."""
    models = cast(Iterator[type[Model]], all_models(Model))
    for model in models:
        for _name, _stored_name, reference in model._references():
            try:
                _ = reference.target
            except TypeError as error:
                yield "E015", f"{reference.model._meta.label}: {error}"


@_check(Tags.models, TAG)
def check_time_zones() -> Findings:
    """Check that forms and templates know the time zones of stored times. Costs no request."""
    times = (DateTimeAttribute, UTCDateTimeAttribute)
    for model in () if settings.USE_TZ else all_models():
        names = [name for name, _, kind in model._named_attributes() if isinstance(kind, times)]
        if names:
            yield "E016", f"USE_TZ is off, but {model._meta.label} has times: {', '.join(names)}."


@_check(Tags.models, TAG)
def check_overrides() -> Findings:
    """Check for overridden methods and receivers of signals that other operations do not call.

    Costs no request.
    """
    for model in all_models():
        for method, others in _CALLERS.items():
            home = next((base for base in model.__mro__ if method in vars(base)), PlainModel)
            if home.__module__.partition(".")[0] not in APPS:
                yield "W006", f"{others} do not call {home.__module__}.{home.__name__}.{method}."
    models = {base for model in all_models() for base in model.__mro__}
    senders = {id(model): f"{model.__module__}.{model.__name__}" for model in models}
    if not has_database():
        senders[id(None)] = "any model without a relational database"
    for name in _SIGNALS:
        for (_receiver, sender), *_rest in getattr(signals, name).receivers:
            if sender in senders:
                yield "W006", f"{name} is not sent for {senders[sender]}."


@_check(Tags.caches, TAG)
def check_caches() -> Findings:
    """Check the options of each cache, and that sessions are in a `DynamoCache`.

    Sends no request.
    """
    for alias in caches:
        if isinstance(cache := caches[alias], DynamoCache) and cache.problem:
            yield "E008", f"CACHES[{alias!r}]: {cache.problem}"
    if settings.SESSION_ENGINE == "dynamo.sessions":
        try:
            import_module(settings.SESSION_ENGINE).SessionStore()
        except ImproperlyConfigured as error:
            yield "E008", str(error)


@_check(TAG)
def check_packages() -> Findings:
    """Check that no package of the project hides an installed app of the library."""
    home = Path(apps.get_app_config("dynamo").path).parent
    for name in sorted(APPS - {"dynamo"}):
        folder = Path(apps.get_app_config(name).path) if apps.is_installed(name) else home / name
        if folder.parent != home and (home / name).is_dir():
            yield "W005", f"{folder} hides the library's package {name}."


@_check(TAG)
def check_commands() -> Findings:
    """Check that the commands of `dynamo` replace those of other apps, not the reverse."""
    dynamo = apps.get_app_config("dynamo")
    found = get_commands()
    for name in sorted(find_commands(str(Path(dynamo.path) / "management"))):
        if found[name] != dynamo.name:
            yield (
                "W003",
                f"The app {found[name]} comes before dynamo in INSTALLED_APPS and replaces its "
                f"command {name}.",
            )


def _check_tables() -> Findings:
    correct = []
    for table in all_tables():
        try:
            unready = verify(table)
        except TableMissing:
            yield "E001", f"The table {table.name} is missing."
        except TableMismatch as error:
            yield "E002", str(error)
        else:
            correct.append(table.name)
            for index, state in unready.items():
                yield "E006", f"The index {index} of the table {table.name} is {state}."
            for feature in features_of(table):
                if feature.name in _WARNINGS and feature.is_off():
                    yield _WARNINGS[feature.name], f"The table {table.name} has no {feature.name}."
            for declared in table.indexes:
                if declared.name not in unready and not _is_queried(table, declared):
                    name = f"{declared.name} of {table.name}"
                    yield "W007", f"The engine refuses queries of the index {name}."
            yield from _check_items(table.name)
    if CacheItem.table() in correct:
        yield from _check_transactions()


def _is_queried(table: Table, index: Index) -> bool:
    """Whether the engine can query an index with several partition or sort attributes."""
    if len(index.key) - index.partitions < 2 and index.partitions < 2:
        return True
    names = {f"#{place}": name for place, (name, _type) in enumerate(index.key)}
    values = {f":{place}": _VALUES[kind] for place, (_name, kind) in enumerate(index.key)}
    request = {
        "TableName": table.name,
        "IndexName": index.name,
        "KeyConditionExpression": " AND ".join(
            f"{name} = {value}" for name, value in zip(names, values, strict=True)
        ),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    try:
        send("Query", request)
    except Rejected:
        return False
    return True


def _check_items(table: str) -> Findings:
    """Read a page of the table as each of its models."""
    models = [model for model in dict.fromkeys(all_models()) if model.table() == table]
    if not models:
        # The table has only guard items of a model.
        return
    request = {"TableName": table, "Limit": SAMPLE, "ConsistentRead": False}
    try:
        items = send("Scan", request)["Items"]
    except Rejected as error:
        yield "W004", f"The items of the table {table} were not checked: {error}"
        return
    for model in models:
        errors = [error for _item, error in model._damage_in(items)]
        if errors:
            text = f"{len(errors)} of {len(items)} items cannot be read as {model._meta.label}"
            yield "W004", f"{text}, such as this: {errors[0]}"


def _check_transactions() -> Findings:
    """Send one transaction twice with one token.

    The engine must recognize the second as the first.
    """
    key: Item = {"key": {"S": f"check#{uuid.uuid4()}"}}
    # TTL deletes the item if this process ends before it does.
    expires: Item = {"expires": {"N": str(int(time.time()) + 3600)}}
    put = CacheItem._put_if_absent({**key, **expires})
    request = {"TransactItems": [{"Put": put}], "ClientRequestToken": str(uuid.uuid4())}
    try:
        send("TransactWriteItems", request)
        send("TransactWriteItems", request)
    except TransactionCancelled:
        yield (
            "E004",
            "The engine ignores client request tokens: a transaction whose reply is lost would "
            "count as refused although it was carried out.",
        )
    except Rejected as error:
        if error.code != UNKNOWN_OPERATION:
            raise
        yield "E003", "The engine has no transactions; unique attributes and series need them."
    finally:
        send("DeleteItem", {"TableName": CacheItem.table(), "Key": key})
