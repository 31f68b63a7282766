"""The tables that the models declare, and how they are created."""

import uuid
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError

from dynamo._internal.client.sending import send
from dynamo._internal.tables import Table, all_tables, create, features_of
from dynamo.exceptions import Rejected, TableMismatch, Unavailable
from dynamo.management.commands import createtables
from tests.dynamo.bands import Singer
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy

KEY = (("pk", "S"),)
ALWAYS = 1_000


@pytest.fixture
def table(engine: str) -> Table:
    """A table that does not exist yet."""
    return Table(name := f"test-{uuid.uuid4().hex}", name, KEY, ttl_attribute="expires")


def described(table: Table) -> Any:
    return send("DescribeTable", {"TableName": table.name})["Table"]


def make_bare(table: Table) -> None:
    """Create the table with nothing but its key."""
    request = {"TableName": table.name, **table.schema, "BillingMode": "PAY_PER_REQUEST"}
    send("CreateTable", request)


def ttl_of(table: Table) -> Any:
    answer = send("DescribeTimeToLive", {"TableName": table.name})
    return answer["TimeToLiveDescription"]


def test_the_models_declare_the_key_and_the_ttl_attribute_of_each_table(settings: Any) -> None:
    plain = {table.name: table for table in all_tables()}
    assert plain["counters"] == Table("counters", "counters", (("counterName", "S"),))
    assert plain["cache"] == Table("cache", "cache", (("key", "S"),), ttl_attribute="expires")
    assert plain[Singer.table()].key == (("singerNumber", "S"),)
    assert plain["tests-singer-guards"].key == KEY

    settings.DYNAMODB_TABLE_PREFIX = "staging-"
    prefixed = all_tables()
    assert [table.name for table in prefixed] == [f"staging-{name}" for name in plain]
    assert [table.base_name for table in prefixed] == [*plain]


@pytest.mark.parametrize("name", ["ab", "a" * 256, "a table"])
def test_a_name_that_dynamodb_does_not_accept_is_rejected(name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="3 to 255"):
        Table(name, name, KEY)


def test_a_new_table_is_on_demand_encrypted_and_protected(table: Table) -> None:
    done = create(table)

    description = described(table)
    assert description["TableStatus"] == "ACTIVE"
    assert description["KeySchema"] == table.schema["KeySchema"]
    assert description["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert description["SSEDescription"]["Status"] == "ENABLED"
    assert description["DeletionProtectionEnabled"] is True
    assert ttl_of(table) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    assert done[0] == f"Created the table {table.name}."
    assert done[-1] == f"Turned on time to live for the table {table.name}."
    assert create(table) == []


def test_eight_threads_that_create_a_table_at_once_create_one(
    table: Table, at_once: Callable[..., list[Any]]
) -> None:
    done = at_once(lambda _number: create(table))

    created = [sentence for each in done for sentence in each if sentence.startswith("Created")]
    assert len(created) == 1


def test_an_incomplete_table_is_completed(table: Table) -> None:
    make_bare(table)

    done = create(table)

    assert f"Turned on deletion protection for the table {table.name}." in done
    assert f"Turned on time to live for the table {table.name}." in done
    assert described(table)["DeletionProtectionEnabled"] is True
    assert not any(each.is_off() for each in features_of(table.name, table.ttl_attribute))


def test_a_table_with_another_key_is_left_as_it_is(table: Table) -> None:
    make_bare(table)
    declared = Table(table.name, table.base_name, (("id", "N"),), "expires")

    with pytest.raises(TableMismatch) as caught:
        create(declared)

    assert str(caught.value) == (
        f"The table {table.name} has the key pk (S); the models need id (N)."
    )
    assert ttl_of(table) == {"TimeToLiveStatus": "DISABLED"}
    assert not described(table).get("DeletionProtectionEnabled")


@pytest.mark.parametrize("verb", ["Describe", "Update"])
def test_features_that_the_engine_does_not_have_are_skipped(
    table: Table, proxy: FaultProxy, verb: str
) -> None:
    for feature in ("TimeToLive", "ContinuousBackups"):
        proxy.plan(f"{verb}{feature}", Answer(400, "UnknownOperationException"), ALWAYS)

    assert create(table) == [f"Created the table {table.name}."]


@pytest.mark.parametrize("ready_seconds", [60, 0])
def test_a_busy_table_is_asked_again_until_the_time_is_over(
    table: Table, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, ready_seconds: float
) -> None:
    monkeypatch.setattr("dynamo._internal.tables._PAUSE_SECONDS", 0)
    monkeypatch.setattr("dynamo._internal.tables.READY_SECONDS", ready_seconds)
    proxy.plan("UpdateTimeToLive", Answer(400, "ResourceInUseException"), times=2)

    with nullcontext() if ready_seconds else pytest.raises(Unavailable, match="ResourceInUse"):
        create(table)

    assert (ttl_of(table)["TimeToLiveStatus"] == "ENABLED") == bool(ready_seconds)


def test_a_table_that_does_not_appear_is_an_error(
    table: Table, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo._internal.tables.READY_SECONDS", 0)
    monkeypatch.setattr("dynamo._internal.tables.POLL_SECONDS", 0)
    proxy.plan("DescribeTable", Answer(400, "ResourceNotFoundException"), ALWAYS)

    with pytest.raises(Unavailable, match="still not visible"):
        create(table)


def test_ttl_that_another_process_turned_on_meanwhile_is_not_an_error(
    table: Table, proxy: FaultProxy
) -> None:
    # So DynamoDB answers a request for TTL that is on already.
    proxy.plan("UpdateTimeToLive", Answer(400, "ValidationException", carried_out=True), ALWAYS)

    done = create(table)

    assert f"Turned on time to live for the table {table.name}." not in done
    assert ttl_of(table)["TimeToLiveStatus"] == "ENABLED"


@pytest.mark.parametrize("operation", ["CreateTable", "DescribeTimeToLive", "UpdateTimeToLive"])
def test_missing_rights_are_an_error(table: Table, proxy: FaultProxy, operation: str) -> None:
    proxy.plan(operation, Answer(400, "AccessDeniedException"), ALWAYS)

    with pytest.raises(Rejected, match="AccessDenied"):
        create(table)


@pytest.fixture
def two(settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[Table]:
    """Two declared tables, which do not exist under this prefix."""
    settings.DYNAMODB_TABLE_PREFIX = f"{uuid.uuid4().hex}-"
    tables = all_tables()[:2]
    monkeypatch.setattr(createtables, "all_tables", lambda: tables)
    return tables


@pytest.mark.usefixtures("engine")
def test_createtables_prints_what_it_did_and_then_that_nothing_is_left(
    two: list[Table], capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("createtables")
    printed = capsys.readouterr().out
    assert all(f"Created the table {table.name}.\n" in printed for table in two)

    call_command("createtables")
    assert capsys.readouterr().out == "Nothing to do: all 2 tables exist.\n"


def test_createtables_prints_the_tables_that_it_created_before_an_error(
    two: list[Table], proxy: FaultProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = two
    proxy.plan(
        "CreateTable",
        Answer(400, "AccessDeniedException"),
        when=lambda body: body["TableName"] == second.name,
    )

    with pytest.raises(CommandError):
        call_command("createtables")

    assert capsys.readouterr().out.startswith(f"Created the table {first.name}.\n")
