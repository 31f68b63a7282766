"""The tables that the models declare: how they and their indexes are created and checked.

Local engines build an index at once, so the answers of a table whose index is being built are
injected.
"""

import json
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from typing import Any

import boto3
import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError

from dynamo import Rejected, Unavailable
from dynamo.client.sending import send
from dynamo.exceptions import TableMismatch
from dynamo.management.commands import createtables
from dynamo.tables import checks, definitions as tables
from dynamo.tables.definitions import Index, Table, all_tables, create, features_of
from tests.dynamo.bands import Singer
from tests.faults.kinds import Answer, DropReply, Reply
from tests.faults.proxy import FaultProxy

KEY = (("pk", "S"),)
ALWAYS = 1_000


@pytest.fixture
def table(engine: str) -> Table:
    """A table that does not exist yet."""
    return Table(name := f"test-{uuid.uuid4().hex}", name, KEY, ttl_attribute="expires")


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(tables, "_PAUSE_SECONDS", 0.01)


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

    created = [sentence for item in done for sentence in item if sentence.startswith("Created")]
    assert len(created) == 1


def test_an_incomplete_table_is_completed(table: Table) -> None:
    make_bare(table)

    done = create(table)

    assert f"Turned on deletion protection for the table {table.name}." in done
    assert f"Turned on time to live for the table {table.name}." in done
    assert described(table)["DeletionProtectionEnabled"] is True
    assert not any(item.is_off() for item in features_of(table))


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
    monkeypatch.setattr(tables, "READY_SECONDS", ready_seconds)
    proxy.plan("UpdateTimeToLive", Answer(400, "ResourceInUseException"), times=2)

    with nullcontext() if ready_seconds else pytest.raises(Unavailable, match="ResourceInUse"):
        create(table)

    assert (ttl_of(table)["TimeToLiveStatus"] == "ENABLED") == bool(ready_seconds)


def test_a_table_that_does_not_appear_is_an_error(
    table: Table, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "READY_SECONDS", 0)
    proxy.plan("DescribeTable", Answer(400, "ResourceNotFoundException"), ALWAYS)

    with pytest.raises(Unavailable, match="still not visible"):
        create(table)


def test_ttl_that_another_process_turned_on_meanwhile_is_not_an_error(
    table: Table, proxy: FaultProxy
) -> None:
    # DynamoDB's answer if TTL is on already.
    proxy.plan("UpdateTimeToLive", Answer(400, "ValidationException", carried_out=True), ALWAYS)

    done = create(table)

    assert f"Turned on time to live for the table {table.name}." not in done
    assert ttl_of(table)["TimeToLiveStatus"] == "ENABLED"


@pytest.mark.parametrize("operation", ["CreateTable", "DescribeTimeToLive", "UpdateTimeToLive"])
def test_missing_rights_are_an_error(table: Table, proxy: FaultProxy, operation: str) -> None:
    proxy.plan(operation, Answer(400, "AccessDeniedException"), ALWAYS)

    with pytest.raises(Rejected, match="AccessDenied"):
        create(table)


def test_createtables_prints_each_step_when_it_is_done_or_that_nothing_is_left(
    proxy: FaultProxy,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings.DYNAMODB_TABLE_PREFIX = f"{uuid.uuid4().hex}-"
    first, second = declared = all_tables()[:2]
    monkeypatch.setattr(createtables, "all_tables", lambda: declared)
    proxy.plan(
        "CreateTable",
        Answer(400, "AccessDeniedException"),
        when=lambda body: body["TableName"] == second.name,
    )

    with pytest.raises(CommandError):
        call_command("createtables")
    assert capsys.readouterr().out.startswith(f"Created the table {first.name}.\n")

    call_command("createtables")
    assert capsys.readouterr().out.startswith(f"Created the table {second.name}.\n")

    call_command("createtables")
    assert capsys.readouterr().out == "Nothing to do: all 2 tables exist.\n"


# Indexes ------------------------------------------------------------------------------------------

CITY = ("city", "S")
AGE = ("age", "N")
BY_CITY = Index("by_city", (CITY, AGE))
BY_TOWN = Index("by_town", (("town", "S"),), "INCLUDE", frozenset({"name", "age"}))


@pytest.fixture
def indexed(table: Table) -> Table:
    """A table with indexes, which does not exist yet."""
    return replace(table, indexes=(BY_CITY, BY_TOWN))


@pytest.fixture
def bare(indexed: Table, table: Table) -> Table:
    """The same, which exists without its indexes."""
    create(table)
    return indexed


def stored_indexes(table: Table) -> set[str]:
    description = send("DescribeTable", {"TableName": table.name})["Table"]
    return {
        globalsecondaryindex["IndexName"]
        for globalsecondaryindex in description.get("GlobalSecondaryIndexes", ())
    }


def created(table: Table, *indexes: Index) -> list[str]:
    return [f"Created the index {index.name} of the table {table.name}." for index in indexes]


def building(engine: str, name: str) -> Reply:
    """The description of a table, but the index `name` is being built."""
    client = boto3.client("dynamodb", endpoint_url=engine, region_name="us-east-1")

    def body(request: dict[str, Any]) -> dict[str, Any]:
        description = client.describe_table(TableName=request["TableName"])["Table"]
        for index in description["GlobalSecondaryIndexes"]:
            index["IndexStatus"] = "CREATING" if index["IndexName"] == name else "ACTIVE"
        described: dict[str, Any] = json.loads(json.dumps(description, default=lambda _time: 0.0))
        return {"Table": described}

    return Reply(body)


def updated(proxy: FaultProxy, count: int) -> Callable[[dict[str, Any]], bool]:
    """A condition for a fault: `count` indexes were asked for."""
    return lambda _body: sum(item.operation == "UpdateTable" for item in proxy.seen) == count


def test_a_new_table_has_its_indexes(indexed: Table) -> None:
    assert created(indexed, BY_CITY)[0] not in create(indexed)

    assert stored_indexes(indexed) == {"by_city", "by_town"}
    assert tables.verify(indexed) == {}
    assert create(indexed) == []


def test_a_live_table_gets_its_missing_indexes_and_keeps_others(bare: Table) -> None:
    other = Index("by_age", (("age", "N"),), "KEYS_ONLY")
    assert create(replace(bare, indexes=(other,))) == created(bare, other)

    assert create(bare) == created(bare, BY_CITY, BY_TOWN)

    assert stored_indexes(bare) == {"by_age", "by_city", "by_town"}
    assert create(bare) == []


def test_indexes_are_built_one_at_a_time_with_progress(
    bare: Table, engine: str, proxy: FaultProxy
) -> None:
    proxy.plan("DescribeTable", building(engine, "by_city"), 2, when=updated(proxy, 1))
    proxy.plan("DescribeTable", building(engine, "by_town"), 1, when=updated(proxy, 2))
    proxy.seen.clear()
    said: list[str] = []

    assert create(bare, said.append) == created(bare, BY_CITY, BY_TOWN)

    assert said[0] == f"The index by_city of the table {bare.name} is CREATING, for 0 s so far."
    assert said[-1].startswith("The index by_town")
    states = [item.operation for item in proxy.seen]
    first = states.index("UpdateTable")
    assert states[first : first + 4] == ["UpdateTable", *["DescribeTable"] * 3]
    asked = [item.body for item in proxy.seen if item.operation == "UpdateTable"]
    assert asked[0].keys() == {"TableName", "AttributeDefinitions", "GlobalSecondaryIndexUpdates"}
    # DynamoDB may refuse definitions of attributes that no index uses yet.
    assert [
        {definition["AttributeName"] for definition in body["AttributeDefinitions"]}
        for body in asked
    ] == [{"pk", "city", "age"}, {"pk", "city", "age", "town"}]


def test_an_index_that_is_not_built_within_a_day_is_an_error(
    indexed: Table, engine: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(indexed)
    proxy.plan("DescribeTable", building(engine, "by_city"), ALWAYS)
    monkeypatch.setattr(tables, "BUILD_SECONDS", 0.05)

    with pytest.raises(Unavailable, match="'by_city': 'CREATING'"):
        create(indexed)


@pytest.mark.parametrize("code", ["ResourceInUseException", "LimitExceededException"])
def test_createtables_waits_while_tables_are_changed_elsewhere(
    bare: Table, proxy: FaultProxy, impatient: float, code: str
) -> None:
    reads: list[int] = []

    def is_first(_body: dict[str, Any]) -> bool:
        reads.append(sum(item.operation == "DescribeTable" for item in proxy.seen))
        return reads[-1] == reads[0]

    proxy.plan("UpdateTable", Answer(400, code), ALWAYS, when=is_first)

    assert create(bare) == created(bare, BY_CITY, BY_TOWN)


def test_an_index_is_created_once_despite_a_lost_reply_and_other_threads(
    bare: Table, proxy: FaultProxy, at_once: Callable[..., list[Any]]
) -> None:
    proxy.plan("UpdateTable", DropReply())

    done = at_once(lambda _number: create(bare))

    assert stored_indexes(bare) == {"by_city", "by_town"}
    sentences = [sentence for item in done for sentence in item]
    assert len(sentences) == len(set(sentences)) <= 2


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (replace(BY_CITY, key=(CITY,)), "city (S) with ALL"),
        (replace(BY_CITY, projection="KEYS_ONLY"), "city (S), age (N) with KEYS_ONLY"),
    ],
)
def test_an_index_with_another_definition_is_an_error_that_names_both(
    indexed: Table, changed: Index, text: str
) -> None:
    create(indexed)

    with pytest.raises(TableMismatch) as caught:
        create(replace(indexed, indexes=(changed,)))

    assert str(caught.value) == (
        f"The table {indexed.name} has the index by_city on city (S), age (N) with ALL; "
        f"the models need {text}."
    )


def test_a_missing_index_and_one_that_is_being_built_are_found(
    bare: Table, engine: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(table: Table = bare) -> list[tuple[str | None, str]]:
        monkeypatch.setattr(checks, "all_tables", lambda: [table])
        messages = run_checks(tags=["dynamodb"], include_deployment_checks=True)
        return [(message.id, message.msg) for message in messages]

    assert found() == [
        ("dynamo.E006", f"The index {name} of the table {bare.name} is missing.")
        for name in ("by_city", "by_town")
    ]
    create(bare)
    proxy.plan("DescribeTable", building(engine, "by_town"))
    assert found() == [("dynamo.E006", f"The index by_town of the table {bare.name} is CREATING.")]
    assert found() == []
    [(other, _message)] = found(replace(bare, indexes=(replace(BY_CITY, key=(CITY,)),)))
    assert other == "dynamo.E002"


def test_createtables_says_which_index_it_waits_for(
    indexed: Table, engine: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(indexed)
    monkeypatch.setattr(createtables, "all_tables", lambda: [indexed])
    proxy.plan("DescribeTable", building(engine, "by_city"), 3)
    out = StringIO()

    call_command("createtables", stdout=out)

    *waited, done = out.getvalue().splitlines()
    assert "The index by_city" in waited[0]
    assert "CREATING" in waited[0]
    assert done == "Nothing to do: the table exists."
