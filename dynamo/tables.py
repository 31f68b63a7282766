"""The tables that the models declare, and their creation.

Each model names its own table, and a declaration of unique attributes may name a second one for its
guard items. Commands, checks and the CloudFormation template read them from here.

Besides its key a table should have deletion protection, point-in-time recovery and TTL. Each is
read by one operation and turned on by another. An engine that does not know the operation is
skipped, without a warning.

Source: API reference, https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from dynamo import cache  # noqa: F401 - defines a model, which no app's models do
from dynamo.client.sending import send
from dynamo.exceptions import Rejected, TableMismatch, TableMissing, Unavailable
from dynamo.items import TABLE_NAME_PATTERN, PlainModel, all_models
from dynamo.models import Model
from dynamo.unique.attributes import UniqueAttributes

#: AWS creates a table within seconds.
READY_SECONDS = 120.0
POLL_SECONDS = 0.5

DELETION_PROTECTION = "deletion protection"
RECOVERY = "point-in-time recovery"
TTL = "time to live"

#: What AWS, DynamoDB Local, dynoxide and ministack answer to an operation that they do not know.
UNKNOWN_OPERATION = "UnknownOperationException"

# The table was created, or was changed, a moment ago.
_BUSY = {"ContinuousBackupsUnavailableException", "ResourceInUseException"}
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True)
class KeyAttribute:
    """One attribute of a table's key: `role` is HASH or RANGE, `type` is S, N or B."""

    name: str
    role: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} ({self.type})"


@dataclass(frozen=True)
class Table:
    """A table as declared. `base_name` is its name without the prefix.

    `ttl_attribute` is the stored name of the attribute that TTL uses, None if no items expire.
    """

    name: str
    base_name: str
    key: tuple[KeyAttribute, ...]
    ttl_attribute: str | None = None

    def __post_init__(self) -> None:
        if not TABLE_NAME_PATTERN.fullmatch(self.name):
            raise ImproperlyConfigured(
                f"{self.name!r} is not a valid table name: DynamoDB takes 3 to 255 letters, digits "
                "and the characters _ - . (DYNAMODB_TABLE_PREFIX is part of the name)."
            )

    @property
    def key_schema(self) -> list[dict[str, str]]:
        """The key, for CreateTable and CloudFormation."""
        return [{"AttributeName": part.name, "KeyType": part.role} for part in self.key]

    @property
    def attribute_definitions(self) -> list[dict[str, str]]:
        """The types of the key attributes, for CreateTable and CloudFormation."""
        return [{"AttributeName": part.name, "AttributeType": part.type} for part in self.key]


def all_tables() -> list[Table]:
    """Every table that the installed apps need, sorted by name; costs no request.

    Raises:
        ImproperlyConfigured: an invalid name, or models that disagree about a table.
    """
    models = set(all_models())
    for model in list(models):
        declarations = (each for each in vars(model).values() if isinstance(each, UniqueAttributes))
        models.update(declaration.guard_model for declaration in declarations)
    guard_tables = [_guard_table_of(model) for model in models if _has_guard_table(model)]
    return merged([*map(_table_of, models), *guard_tables])


def _has_guard_table(model: type[PlainModel]) -> bool:
    return issubclass(model, Model) and model.has_guard_table()


def _guard_table_of(model: type[Any]) -> Table:
    name = model.guard_table_name()
    key = KeyAttribute("pk", "HASH", "S")
    return Table(f"{settings.DYNAMODB_TABLE_PREFIX}{name}", name, (key,))


def merged(tables: Iterable[Table]) -> list[Table]:
    """One table per name, sorted; a model without a TTL attribute takes that of another.

    Raises:
        ImproperlyConfigured: two declarations of one table have different keys or TTL attributes.
    """
    by_name: dict[str, Table] = {}
    for table in tables:
        other = by_name.get(table.name, table)
        ttl_attributes = {table.ttl_attribute, other.ttl_attribute} - {None}
        if table.key != other.key or len(ttl_attributes) > 1:
            raise ImproperlyConfigured(
                f"Two models disagree on the key or the TTL attribute of the table {table.name}."
            )
        by_name[table.name] = table if table.ttl_attribute else other
    return [by_name[name] for name in sorted(by_name)]


def _table_of(model: type[PlainModel]) -> Table:
    schema = model._get_schema()
    return Table(
        name=model.table(),
        base_name=model.table().removeprefix(settings.DYNAMODB_TABLE_PREFIX),
        key=_key_of(schema["key_schema"], schema["attribute_definitions"]),
        ttl_attribute=model.ttl_attribute,
    )


def _key_of(
    key_schema: Sequence[Mapping[str, Any]], attribute_definitions: Sequence[Mapping[str, Any]]
) -> tuple[KeyAttribute, ...]:
    types = {each["AttributeName"]: each["AttributeType"] for each in attribute_definitions}
    parts = [
        KeyAttribute(each["AttributeName"], each["KeyType"], types[each["AttributeName"]])
        for each in key_schema
    ]
    return tuple(sorted(parts, key=lambda part: part.role))  # HASH, then RANGE


def verify(table: Table) -> None:
    """Return if the table exists with its key. Costs 1 request.

    Raises:
        TableMissing: it does not exist.
        TableMismatch: it exists with another key.
    """
    _require_key(table, send("DescribeTable", {"TableName": table.name})["Table"])


def create(table: Table) -> list[str]:
    """Create the table, or what it lacks; returns a sentence for each change.

    A new table is on-demand and encrypted. Deletion protection, point-in-time recovery and TTL are
    turned on if the engine knows them. Safe to repeat and to run twice at once. Costs 4 requests
    if nothing is missing.

    Raises:
        TableMismatch: the table exists with another key.
        Unavailable: the table, or one of its features, was not ready within two minutes.
        Rejected: rights are missing.
    """
    done = []
    try:
        verify(table)
    except TableMissing:
        if _create(table):
            done.append(f"Created the table {table.name}.")
    _require_key(table, _wait_until_active(table))
    for feature in features_of(table.name, table.ttl_attribute):
        if feature.turn_on(READY_SECONDS):
            done.append(f"Turned on {feature.name} for the table {table.name}.")
    return done


def _create(table: Table) -> bool:
    """Create the table; False if another process did."""
    request = {
        "TableName": table.name,
        "KeySchema": table.key_schema,
        "AttributeDefinitions": table.attribute_definitions,
        "BillingMode": "PAY_PER_REQUEST",
        "SSESpecification": {"Enabled": True},
        "DeletionProtectionEnabled": True,
    }
    try:
        send("CreateTable", request)
    except Rejected as error:
        if error.code != "ResourceInUseException":
            raise
        return False
    return True


def _wait_until_active(table: Table) -> dict[str, Any]:
    ends_at = time.monotonic() + READY_SECONDS
    while True:
        try:
            description: dict[str, Any] = send("DescribeTable", {"TableName": table.name})["Table"]
        except TableMissing:
            status = "not visible"  # DescribeTable may lag behind CreateTable
        else:
            status = description["TableStatus"]
            if status == "ACTIVE":
                return description
        if time.monotonic() > ends_at:
            raise Unavailable("CreateTable", f"{table.name} is still {status}")
        time.sleep(POLL_SECONDS)


def _require_key(table: Table, description: dict[str, Any]) -> None:
    stored = _key_of(description["KeySchema"], description["AttributeDefinitions"])
    if stored != table.key:
        raise TableMismatch(
            table.name,
            stored=", ".join(map(str, stored)),
            declared=", ".join(map(str, table.key)),
        )


@dataclass(frozen=True)
class Feature:
    """One feature of one table: `is_on` reads its state from the answer to `question`.

    The state is None if the engine does not know the feature.
    """

    name: str
    table: str
    question: str
    is_on: Callable[[dict[str, Any]], bool | None]
    operation: str
    change: dict[str, Any]

    def is_off(self) -> bool:
        """Whether the engine knows the feature and the table lacks it. Costs 1 request."""
        try:
            answer = send(self.question, {"TableName": self.table})
        except Rejected as error:
            if error.code != UNKNOWN_OPERATION:
                raise
            return False
        return self.is_on(answer) is False

    def turn_on(self, patience_seconds: float) -> bool:
        """Turn the feature on if it is off; whether this call did. Costs 1 or 2 requests.

        Raises:
            Unavailable: the table was busy for longer than `patience_seconds`.
            Rejected: rights are missing, or TTL was changed less than an hour ago.
        """
        ends_at = time.monotonic() + patience_seconds
        while self.is_off():
            try:
                send(self.operation, {"TableName": self.table, **self.change})
            except Rejected as error:
                if error.code == UNKNOWN_OPERATION:
                    return False
                if error.code in _BUSY:
                    if time.monotonic() > ends_at:
                        raise Unavailable(self.operation, error.code) from error
                    time.sleep(_PAUSE_SECONDS)
                elif self.is_off():  # another process did not turn it on meanwhile
                    raise
            else:
                return True
        return False


def features_of(table: str, ttl_attribute: str | None) -> list[Feature]:
    """The features that the table with this full name should have; TTL only with an attribute."""
    features = [
        Feature(
            DELETION_PROTECTION,
            table,
            "DescribeTable",
            lambda answer: answer["Table"].get("DeletionProtectionEnabled"),
            "UpdateTable",
            {"DeletionProtectionEnabled": True},
        ),
        Feature(
            RECOVERY,
            table,
            "DescribeContinuousBackups",
            _has_recovery,
            "UpdateContinuousBackups",
            {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
        ),
    ]
    if ttl_attribute is not None:
        features.append(
            Feature(
                TTL,
                table,
                "DescribeTimeToLive",
                lambda answer: _has_ttl(answer, ttl_attribute),
                "UpdateTimeToLive",
                {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": ttl_attribute}},
            )
        )
    return features


def _has_recovery(answer: dict[str, Any]) -> bool:
    backups = answer["ContinuousBackupsDescription"]
    recovery = backups.get("PointInTimeRecoveryDescription", {})
    return bool(recovery.get("PointInTimeRecoveryStatus") == "ENABLED")


def _has_ttl(answer: dict[str, Any], attribute: str) -> bool:
    ttl = answer["TimeToLiveDescription"]
    # On AWS it is ENABLING for up to an hour, and cannot be changed meanwhile.
    on = ttl.get("TimeToLiveStatus") in {"ENABLING", "ENABLED"}
    return on and ttl.get("AttributeName") == attribute
