"""The tables that the models declare, and their creation.

Each model names its own table, and may name a second one for its guard items. Commands, checks and
the CloudFormation template read them from here.

A table should have its key, its indexes, deletion protection, point-in-time recovery and TTL. One
operation reads each feature, and another one turns it on. An engine that does not support the
operation is skipped, without a warning.

Source: API reference, https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from dynamo.cache.items import CacheItem  # noqa: F401 - defines a model, which no app's models do
from dynamo.client.plain import TABLE_NAME_PATTERN, PlainModel, all_models
from dynamo.client.sending import send
from dynamo.exceptions import Rejected, TableMismatch, TableMissing, Unavailable
from dynamo.model.base import Model
from dynamo.model.unique import OWNER, SEARCH_INDEX, SEARCH_PREFIX, SEARCH_VALUE
from dynamo.wire.types import Answer, Description

#: AWS creates a table within seconds.
READY_SECONDS = 120.0
#: An index of a large table takes hours.
BUILD_SECONDS = 24 * 3600.0
POLL_SECONDS = 0.5

DELETION_PROTECTION = "deletion protection"
RECOVERY = "point-in-time recovery"
TTL = "time to live"

#: The error code of AWS, DynamoDB Local, dynoxide and ministack for an unsupported operation.
UNKNOWN_OPERATION = "UnknownOperationException"

# The table was created or changed just before, or other tables are being changed.
_BUSY = {
    "ContinuousBackupsUnavailableException",
    "LimitExceededException",
    "ResourceInUseException",
}
_PAUSE_SECONDS = 1.0


#: The names and types of the partition key and of any sort key: `(("pk", "S"), ("n", "N"))`.
Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Index:
    """A global secondary index. `projection` is ALL, KEYS_ONLY, or INCLUDE with stored names.

    The first `partitions` attributes of the key are its partition key.
    """

    name: str
    key: Key
    projection: str = "ALL"
    included: frozenset[str] = frozenset()
    partitions: int = 1

    def __str__(self) -> str:
        partition, sort = self.key[: self.partitions], self.key[self.partitions :]
        key = f"({_listed(partition)}), {_listed(sort)}" if partition[1:] else _listed(self.key)
        return f"{key} with {' '.join([self.projection, *sorted(self.included)])}"

    @property
    def definition(self) -> dict[str, object]:
        """The index, for CreateTable, UpdateTable and CloudFormation."""
        included = {"NonKeyAttributes": sorted(self.included)} if self.included else {}
        return {
            "IndexName": self.name,
            "KeySchema": _key_schema(self.key, self.partitions),
            "Projection": {"ProjectionType": self.projection, **included},
        }


_SEARCH_KEY = ((SEARCH_PREFIX, "S"), (SEARCH_VALUE, "S"))
_SEARCH_INDEX = Index(SEARCH_INDEX, _SEARCH_KEY, "INCLUDE", frozenset({OWNER}))


@dataclass(frozen=True)
class Table:
    """A table as declared. `base_name` is its name without the prefix.

    `ttl_attribute` is the stored name of the attribute that TTL uses, None if no items expire.
    `promises` are further properties on which the models of one table must agree; None if a model
    has none.
    """

    name: str
    base_name: str
    key: Key
    ttl_attribute: str | None = None
    indexes: tuple[Index, ...] = ()
    promises: object = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not TABLE_NAME_PATTERN.fullmatch(self.name):
            raise ImproperlyConfigured(
                f"{self.name!r} is not a valid table name: DynamoDB takes 3 to 255 letters, digits "
                "and the characters _ - . (DYNAMODB_TABLE_PREFIX is part of the name)."
            )

    @property
    def schema(self) -> dict[str, object]:
        """Key and indexes, for CreateTable and CloudFormation, which take no empty list."""
        indexes = [index.definition for index in self.indexes]
        return {
            "KeySchema": _key_schema(self.key),
            "AttributeDefinitions": _definitions(self.key, *(index.key for index in self.indexes)),
            **({"GlobalSecondaryIndexes": indexes} if indexes else {}),
        }


def all_tables() -> list[Table]:
    """Every table that the installed apps need, sorted by name; costs no request.

    Raises:
        ImproperlyConfigured: an invalid name, or models that disagree about a table.
    """
    return merged(table for model in set(all_models()) for table in tables_of(model))


def tables_of(model: type[PlainModel]) -> list[Table]:
    """The table of the model's items, and that of its guard items if it is another one."""
    key, indexes = _described(model._description())
    name = model.table().removeprefix(settings.DYNAMODB_TABLE_PREFIX)
    indexes_by_name = tuple(indexes[index] for index in sorted(indexes))
    items = Table(model.table(), name, key, model.ttl_attribute, indexes_by_name)
    if not issubclass(model, Model):
        return [items]
    uniques = frozenset(
        (key.prefix, key.normalize, key.searchable, *(one.attr_type for one in key.attributes))
        for key in model._unique_keys
    )
    guards = model._guard_table()
    searches = (_SEARCH_INDEX,) if any(key.searchable for key in model._unique_keys) else ()
    items = replace(items, promises=(guards.base_name, uniques))
    if not model.has_guard_table():
        return [replace(items, indexes=(*items.indexes, *searches))]
    key = ((guards.key_name, "S"),)
    promises = f"guard items of {name}"
    return [items, Table(guards.name, guards.base_name, key, None, searches, promises)]


def merged(tables: Iterable[Table]) -> list[Table]:
    """One table per name, sorted. A property that one model lacks is taken from another.

    Raises:
        ImproperlyConfigured: two declarations of one table disagree.
    """
    by_name: dict[str, Table] = {}
    for table in tables:
        other = by_name.get(table.name, table)
        indexes = {index.name: index for index in (*other.indexes, *table.indexes)}
        both = replace(
            table,
            ttl_attribute=table.ttl_attribute or other.ttl_attribute,
            indexes=tuple(indexes[name] for name in sorted(indexes)),
            promises=table.promises or other.promises,
        )
        keys = (both.key, *(index.key for index in both.indexes))
        types = {part for key in keys for part in key}
        disagreements = {
            "the key": other.key != both.key,
            "the TTL attribute": other.ttl_attribute not in {None, both.ttl_attribute},
            "an index": not {*other.indexes} <= {*both.indexes},
            "the type of an attribute": len(dict(types)) != len(types),
            "the unique values or guard items": other.promises not in {None, both.promises},
        }
        if found := [what for what, is_so in disagreements.items() if is_so]:
            raise ImproperlyConfigured(
                f"Two models disagree on {' and '.join(found)} of the table {table.name}."
            )
        by_name[table.name] = both
    return [by_name[name] for name in sorted(by_name)]


def _key_schema(key: Key, partitions: int = 1) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": "HASH" if place < partitions else "RANGE"}
        for place, (name, _type) in enumerate(key)
    ]


def _definitions(*keys: Key) -> list[dict[str, str]]:
    types = dict(part for key in keys for part in key)
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def _listed(key: Key) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in key)


def _described(description: Description) -> tuple[Key, dict[str, Index]]:
    """The key and the indexes, by name, of a table as DescribeTable describes it."""
    definitions = description["AttributeDefinitions"]
    types = {definition["AttributeName"]: definition["AttributeType"] for definition in definitions}

    def key_of(described: Description) -> Key:
        parts = sorted(described["KeySchema"], key=itemgetter("KeyType"))  # HASH, then RANGE
        return tuple((part["AttributeName"], types[part["AttributeName"]]) for part in parts)

    indexes = {}
    for index in description.get("GlobalSecondaryIndexes", ()):
        projection = index["Projection"]
        name = index["IndexName"]
        included = frozenset(projection.get("NonKeyAttributes", ()))
        roles = [part["KeyType"] for part in index["KeySchema"]]
        kind = projection["ProjectionType"]
        indexes[name] = Index(name, key_of(index), kind, included, roles.count("HASH"))
    return key_of(description), indexes


def verify(table: Table) -> dict[str, str]:
    """The states of the indexes that cannot be queried. Costs 1 request.

    Raises:
        TableMissing: the table does not exist.
        TableMismatch: the table or an index exists with another key or projection.
    """
    return _unready(table, send("DescribeTable", {"TableName": table.name})["Table"])


def create(table: Table, report: Callable[[str], object] = lambda _sentence: None) -> list[str]:
    """Create the table, or the parts that it lacks. Returns a sentence for each change.

    A new table is on-demand and encrypted. Deletion protection, point-in-time recovery and TTL are
    turned on if the engine supports them. An existing table gets its missing indexes one after the
    other, because DynamoDB builds one at a time. That may take hours: `report` is called with a
    sentence about once a minute. Indexes that the models do not declare are left as they are.

    It may be repeated, also after an interruption, and may run twice at once. Costs 4 requests if
    nothing is missing.

    Raises:
        TableMismatch: the table or an index exists with another key or projection.
        Unavailable: the table or one of its features was not ready within two minutes, or an
            index within a day.
        Rejected: rights are missing.
    """
    done = []
    try:
        verify(table)
    except TableMissing:
        if _create(table):
            done.append(f"Created the table {table.name}.")
    description = _wait_until_active(table, report)
    missing = _unready(table, description)
    for feature in features_of(table):
        if feature.turn_on():
            done.append(f"Turned on {feature.name} for the table {table.name}.")
    for index in table.indexes:
        if index.name in missing:
            if _existence_of(table, index, description).turn_on():
                done.append(f"Created the index {index.name} of the table {table.name}.")
            description = _wait_until_active(table, report)
    return done


def _create(table: Table) -> bool:
    """Create the table; False if another process did."""
    request = {
        "TableName": table.name,
        "BillingMode": "PAY_PER_REQUEST",
        "SSESpecification": {"Enabled": True},
        "DeletionProtectionEnabled": True,
        **table.schema,
    }
    try:
        send("CreateTable", request)
    except Rejected as error:
        if error.code != "ResourceInUseException":
            raise
        return False
    return True


def _wait_until_active(table: Table, report: Callable[[str], object]) -> Description:
    began = time.monotonic()
    report_at = 0.0
    while True:
        try:
            description = send("DescribeTable", {"TableName": table.name})["Table"]
        except TableMissing:
            description = {"TableStatus": "not visible"}  # DescribeTable may lag behind CreateTable
        states = _index_states(description)
        building = [name for name, state in states.items() if state != "ACTIVE"]
        if not building and description["TableStatus"] == "ACTIVE":
            return description
        seconds = time.monotonic() - began
        if seconds > (BUILD_SECONDS if building else READY_SECONDS):
            what = f"{table.name} is still {description['TableStatus']} {states or ''}"
            raise Unavailable("UpdateTable" if building else "CreateTable", what.strip())
        if building and seconds >= report_at:
            report(
                f"The index {building[0]} of the table {table.name} is {states[building[0]]}, "
                f"for {seconds:.0f} s so far."
            )
            report_at = seconds + min(60, 1 + seconds)
        time.sleep(min(10.0, max(POLL_SECONDS, seconds / 10)))


def _index_states(description: Description) -> dict[str, str]:
    indexes = description.get("GlobalSecondaryIndexes", ())
    return {index["IndexName"]: index["IndexStatus"] for index in indexes}


def _unready(table: Table, description: Description) -> dict[str, str]:
    """The states of the declared indexes that cannot be queried.

    Raises:
        TableMismatch: the table or an index has another key or projection.
    """
    key, stored = _described(description)
    if key != table.key:
        raise TableMismatch(table.name, f"key {_listed(key)}", _listed(table.key))
    states = _index_states(description)
    for index in table.indexes:
        if (other := stored.get(index.name, index)) != index:
            raise TableMismatch(table.name, f"index {index.name} on {other}", str(index))
    unready = {index.name: states.get(index.name, "missing") for index in table.indexes}
    return {name: state for name, state in unready.items() if state != "ACTIVE"}


@dataclass(frozen=True)
class Feature:
    """One feature of one table: `is_on` reads its state from the answer to Describe`topic`.

    The state is None if the engine does not support the feature. Update`topic` makes the `change`.
    """

    name: str
    table: str
    topic: str
    is_on: Callable[[Answer], bool | None]
    change: Mapping[str, object]

    def is_off(self) -> bool:
        """Whether the engine supports the feature and the table lacks it. Costs 1 request."""
        try:
            answer = send(f"Describe{self.topic}", {"TableName": self.table})
        except Rejected as error:
            if error.code != UNKNOWN_OPERATION:
                raise
            return False
        return self.is_on(answer) is False

    def turn_on(self) -> bool:
        """Turn the feature on if it is off. Returns whether this call did. Costs 1 or 2 requests.

        Raises:
            Unavailable: the table was busy for longer than READY_SECONDS.
            Rejected: rights are missing, or TTL was changed less than an hour ago.
        """
        ends_at = time.monotonic() + READY_SECONDS
        while self.is_off():
            try:
                send(f"Update{self.topic}", {"TableName": self.table, **self.change})
            except (Rejected, Unavailable) as error:
                code = error.code if isinstance(error, Rejected) else error.reason
                if code == UNKNOWN_OPERATION:
                    return False
                if code in _BUSY:
                    if time.monotonic() > ends_at:
                        raise Unavailable(f"Update{self.topic}", code) from error
                    time.sleep(_PAUSE_SECONDS)
                elif self.is_off():  # no other process has turned the feature on in the meantime
                    raise
            else:
                return True
        return False


def features_of(table: Table) -> list[Feature]:
    """The features that the table should have; TTL only if it has an attribute for it."""
    protection = {"DeletionProtectionEnabled": True}
    recovery = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
    features = [
        Feature(DELETION_PROTECTION, table.name, "Table", _is_protected, protection),
        Feature(RECOVERY, table.name, "ContinuousBackups", _has_recovery, recovery),
    ]
    if name := table.ttl_attribute:
        ttl = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": name}}
        features.append(Feature(TTL, table.name, "TimeToLive", partial(_has_ttl, name), ttl))
    return features


def _existence_of(table: Table, index: Index, description: Description) -> Feature:
    """An index as a feature of an existing table."""
    # Attributes of further indexes are left out: DynamoDB may refuse definitions that no index
    # uses.
    types = description["AttributeDefinitions"]
    types = [
        *types,
        *(definition for definition in _definitions(index.key) if definition not in types),
    ]
    creation = [{"Create": index.definition}]
    change = {"AttributeDefinitions": types, "GlobalSecondaryIndexUpdates": creation}

    def exists(answer: Answer) -> bool:
        return index.name in _index_states(answer["Table"])

    return Feature(index.name, table.name, "Table", exists, change)


def _is_protected(answer: Answer) -> bool | None:
    return answer["Table"].get("DeletionProtectionEnabled")


def _has_recovery(answer: Answer) -> bool:
    backups = answer["ContinuousBackupsDescription"]
    recovery = backups.get("PointInTimeRecoveryDescription", {})
    return bool(recovery.get("PointInTimeRecoveryStatus") == "ENABLED")


def _has_ttl(attribute: str, answer: Answer) -> bool:
    ttl = answer["TimeToLiveDescription"]
    # On AWS it is ENABLING for up to an hour, and cannot be changed in the meantime.
    on = ttl.get("TimeToLiveStatus") in {"ENABLING", "ENABLED"}
    return on and ttl.get("AttributeName") == attribute
