"""The tables as the models declare them, and making them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from pynamodb.attributes import UnicodeAttribute

from dynamo.client.sending import send
from dynamo.exceptions import Rejected, TableMismatch, TableMissing, Unavailable
from dynamo.models import Model
from dynamo.tables import KeyAttribute, Table, all_tables, create, features_of, merged, verify
from dynamo.unique.attributes import UniqueAttributes
from tests.faults.proxy import through
from tests.other_engines import refusing

KEY = (KeyAttribute("pk", "HASH", "S"),)


class Badge(Model):
    class Meta:
        table_name = "test-badges"

    pk = UnicodeAttribute(hash_key=True)
    number = UnicodeAttribute()

    unique: UniqueAttributes[Badge] = UniqueAttributes(table="test-badge-guards", number=str)


@pytest.fixture
def table(engine: str) -> Table:
    """A table that is not there yet."""
    return Table(name := f"test-{uuid.uuid4().hex}", name, KEY, ttl_attribute="expires")


def described(table: Table) -> dict[str, Any]:
    description: dict[str, Any] = send("DescribeTable", {"TableName": table.name})["Table"]
    return description


def make_bare(table: Table) -> None:
    """The table with nothing but its key."""
    request = {
        "TableName": table.name,
        "KeySchema": table.key_schema,
        "AttributeDefinitions": table.attribute_definitions,
        "BillingMode": "PAY_PER_REQUEST",
    }
    send("CreateTable", request)


def ttl_of(table: Table) -> dict[str, Any]:
    answer = send("DescribeTimeToLive", {"TableName": table.name})
    ttl: dict[str, Any] = answer["TimeToLiveDescription"]
    return ttl


def test_the_models_give_each_table_its_key_and_its_ttl_attribute() -> None:
    tables = {table.name: table for table in all_tables()}

    assert tables["users"] == Table("users", "users", KEY)
    key = (KeyAttribute("key", "HASH", "S"),)
    assert tables["cache"] == Table("cache", "cache", key, ttl_attribute="expires")


def test_users_and_their_guards_are_one_table() -> None:
    names = [table.name for table in all_tables()]

    assert names == sorted(set(names))


def test_guards_in_a_second_table_make_that_a_table_of_ours() -> None:
    tables = {table.name: table for table in all_tables()}

    assert tables["test-badges"].key == tables["test-badge-guards"].key == KEY


def test_the_prefix_goes_before_each_name(settings: Any) -> None:
    plain = {table.name for table in all_tables()}

    settings.DYNAMODB_TABLE_PREFIX = "staging-"

    prefixed = all_tables()
    assert {table.name for table in prefixed} == {f"staging-{name}" for name in plain}
    assert {table.base_name for table in prefixed} == plain


def test_a_sort_key_follows_the_partition_key() -> None:
    key = (KeyAttribute("series", "HASH", "S"), KeyAttribute("number", "RANGE", "N"))
    table = Table("invoices", "invoices", key)

    assert table.key_schema == [
        {"AttributeName": "series", "KeyType": "HASH"},
        {"AttributeName": "number", "KeyType": "RANGE"},
    ]
    assert table.attribute_definitions == [
        {"AttributeName": "series", "AttributeType": "S"},
        {"AttributeName": "number", "AttributeType": "N"},
    ]


def test_two_declarations_of_one_table_must_agree_on_its_key() -> None:
    other_key = (KeyAttribute("id", "HASH", "S"),)

    with pytest.raises(ImproperlyConfigured, match="things"):
        merged([Table("things", "things", KEY), Table("things", "things", other_key)])


def test_two_declarations_of_one_table_must_agree_on_ttl() -> None:
    tables = [Table("things", "things", KEY, ttl) for ttl in ("expires", "until")]

    with pytest.raises(ImproperlyConfigured, match="things"):
        merged(tables)


def test_one_of_two_declarations_may_leave_ttl_to_the_other() -> None:
    tables = [Table("things", "things", KEY, ttl) for ttl in (None, "expires", None)]

    assert merged(tables) == [tables[1]]


@pytest.mark.parametrize("name", ["ab", "a" * 256, "a table"])
def test_a_name_that_dynamodb_does_not_take_is_refused(name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="3 to 255"):
        Table(name, name, KEY)


def test_a_new_table_is_on_demand_encrypted_and_protected(table: Table) -> None:
    done = create(table)

    description = described(table)
    assert description["TableStatus"] == "ACTIVE"
    assert description["KeySchema"] == table.key_schema
    assert description["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert description["SSEDescription"]["Status"] == "ENABLED"
    assert description["DeletionProtectionEnabled"] is True
    assert ttl_of(table) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    assert done[0] == f"Created the table {table.name}."
    assert done[-1] == f"Turned on time to live for the table {table.name}."


def test_a_table_whose_items_do_not_expire_has_no_ttl(table: Table) -> None:
    create(Table(table.name, table.base_name, table.key))

    assert ttl_of(table) == {"TimeToLiveStatus": "DISABLED"}


def test_creating_again_does_nothing(table: Table) -> None:
    create(table)

    assert create(table) == []


def test_eight_who_create_at_once_make_one_table(
    table: Table, at_once: Callable[..., list[Any]]
) -> None:
    done = at_once(lambda _number: create(table))

    created = [sentence for each in done for sentence in each if sentence.startswith("Created")]
    assert len(created) == 1
    assert create(table) == []


def test_a_table_that_stands_bare_is_completed(table: Table) -> None:
    make_bare(table)

    done = create(table)

    assert f"Turned on deletion protection for the table {table.name}." in done
    assert f"Turned on time to live for the table {table.name}." in done
    assert described(table)["DeletionProtectionEnabled"] is True
    assert not any(each.is_off() for each in features_of(table.name, table.ttl_attribute))


def test_a_table_with_another_key_is_left_as_it_is(table: Table) -> None:
    make_bare(table)
    declared = Table(table.name, table.base_name, (KeyAttribute("id", "HASH", "N"),), "expires")

    with pytest.raises(TableMismatch) as caught:
        create(declared)

    assert str(caught.value) == (
        f"The table {table.name} has the key pk (S); the models need id (N)."
    )
    assert ttl_of(table) == {"TimeToLiveStatus": "DISABLED"}
    assert not described(table).get("DeletionProtectionEnabled")


def test_a_missing_table_does_not_pass_for_ours(table: Table) -> None:
    with pytest.raises(TableMissing):
        verify(table)


@pytest.mark.parametrize(
    "operations",
    [
        {"DescribeTimeToLive", "DescribeContinuousBackups"},
        {"UpdateTimeToLive", "UpdateContinuousBackups"},
    ],
)
def test_what_the_engine_does_not_know_is_passed_over(
    table: Table, engine: str, operations: set[str]
) -> None:
    with refusing(engine, operations, "UnknownOperationException") as url, through(url):
        done = create(table)

    assert done == [f"Created the table {table.name}."]


def test_a_busy_table_is_asked_again(
    table: Table, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo.tables._PAUSE_SECONDS", 0)
    busy = refusing(engine, {"UpdateTimeToLive"}, "ResourceInUseException", times=2)

    with busy as url, through(url):
        create(table)

    assert ttl_of(table)["TimeToLiveStatus"] == "ENABLED"


def test_a_table_that_stays_busy_is_reported(
    table: Table, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo.tables.READY_SECONDS", 0)
    busy = refusing(engine, {"UpdateTimeToLive"}, "ResourceInUseException")

    with busy as url, through(url), pytest.raises(Unavailable, match="ResourceInUse"):
        create(table)


def test_a_table_that_does_not_appear_is_reported(
    table: Table, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo.tables.READY_SECONDS", 0)
    monkeypatch.setattr("dynamo.tables.POLL_SECONDS", 0)
    blind = refusing(engine, {"DescribeTable"}, "ResourceNotFoundException")

    with blind as url, through(url), pytest.raises(Unavailable, match="still not visible"):
        create(table)


def test_ttl_that_a_rival_turned_on_meanwhile_is_no_error(table: Table, engine: str) -> None:
    # DynamoDB answers ValidationException to who asks for TTL that is on already.
    late = refusing(engine, {"UpdateTimeToLive"}, "ValidationException", carried_out=True)

    with late as url, through(url):
        done = create(table)

    assert f"Turned on time to live for the table {table.name}." not in done
    assert ttl_of(table)["TimeToLiveStatus"] == "ENABLED"


@pytest.mark.parametrize("operation", ["CreateTable", "DescribeTimeToLive", "UpdateTimeToLive"])
def test_missing_rights_are_reported(table: Table, engine: str, operation: str) -> None:
    forbidden = refusing(engine, {operation}, "AccessDeniedException")

    with forbidden as url, through(url), pytest.raises(Rejected, match="AccessDenied"):
        create(table)


def test_createtables_says_what_it_did_and_then_that_nothing_is_left(
    engine: str, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.DYNAMODB_TABLE_PREFIX = prefix = f"{uuid.uuid4().hex}-"

    call_command("createtables")
    assert f"Created the table {prefix}users.\n" in capsys.readouterr().out

    call_command("createtables")
    count = len(all_tables())
    assert capsys.readouterr().out == f"Nothing to do: all {count} tables exist.\n"
