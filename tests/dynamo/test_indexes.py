"""Global secondary indexes: created with their table or later, one at a time, and checked.

Local engines build an index at once, so the answers of a table whose index is being built are
injected.
"""

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import Any

import boto3
import pytest
from django.core.checks import run_checks
from django.core.management import call_command

from dynamo import checks
from dynamo._internal import tables
from dynamo._internal.client.sending import send
from dynamo._internal.tables import Index, Table, create
from dynamo.exceptions import TableMismatch, Unavailable
from dynamo.management.commands import createtables
from dynamo.management.commands.cloudformation import template
from tests.faults.kinds import Answer, DropReply, Reply
from tests.faults.proxy import FaultProxy

CITY = ("city", "S")
AGE = ("age", "N")
BY_CITY = Index("by_city", (CITY, AGE))
BY_TOWN = Index("by_town", (("town", "S"),), "INCLUDE", frozenset({"name", "age"}))
ALWAYS = 1_000


@pytest.fixture
def table(engine: str) -> Table:
    """A table that does not exist yet."""
    name = f"test-{uuid.uuid4().hex}"
    return Table(name, name, (("pk", "S"),), indexes=(BY_CITY, BY_TOWN))


@pytest.fixture
def bare(table: Table) -> Table:
    """The same, after its table was created without indexes."""
    create(replace(table, indexes=()))
    return table


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(tables, "_PAUSE_SECONDS", 0.01)


def stored_indexes(table: Table) -> set[str]:
    description = send("DescribeTable", {"TableName": table.name})["Table"]
    return {each["IndexName"] for each in description.get("GlobalSecondaryIndexes", ())}


def created(table: Table, *indexes: Index) -> list[str]:
    return [f"Created the index {each.name} of the table {table.name}." for each in indexes]


def building(engine: str, name: str) -> Reply:
    """The description of a table, but the index `name` is being built."""
    client = boto3.client("dynamodb", endpoint_url=engine, region_name="us-east-1")

    def body(request: dict[str, Any]) -> dict[str, Any]:
        description = client.describe_table(TableName=request["TableName"])["Table"]
        for each in description["GlobalSecondaryIndexes"]:
            each["IndexStatus"] = "CREATING" if each["IndexName"] == name else "ACTIVE"
        described: dict[str, Any] = json.loads(json.dumps(description, default=lambda _time: 0.0))
        return {"Table": described}

    return Reply(body)


def updated(proxy: FaultProxy, count: int) -> Callable[[dict[str, Any]], bool]:
    """Whether so many indexes were asked for."""
    return lambda _body: sum(each.operation == "UpdateTable" for each in proxy.seen) == count


def test_a_new_table_has_its_indexes(table: Table) -> None:
    assert created(table, BY_CITY)[0] not in create(table)

    assert stored_indexes(table) == {"by_city", "by_town"}
    assert tables.verify(table) == {}
    assert create(table) == []


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
    states = [each.operation for each in proxy.seen]
    first = states.index("UpdateTable")
    assert states[first : first + 4] == ["UpdateTable", *["DescribeTable"] * 3]
    asked = [each.body for each in proxy.seen if each.operation == "UpdateTable"]
    assert asked[0].keys() == {"TableName", "AttributeDefinitions", "GlobalSecondaryIndexUpdates"}
    # Of attributes that no index uses yet, DynamoDB may refuse the definitions.
    assert [{each["AttributeName"] for each in body["AttributeDefinitions"]} for body in asked] == [
        {"pk", "city", "age"},
        {"pk", "city", "age", "town"},
    ]


def test_a_second_call_waits_for_an_index_that_is_being_built(
    table: Table, engine: str, proxy: FaultProxy
) -> None:
    create(table)
    proxy.plan("DescribeTable", building(engine, "by_city"), 3)
    said: list[str] = []

    assert create(table, said.append) == []
    assert said


def test_an_index_that_is_not_built_within_a_day_is_an_error(
    table: Table, engine: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(table)
    proxy.plan("DescribeTable", building(engine, "by_city"), ALWAYS)
    monkeypatch.setattr(tables, "BUILD_SECONDS", 0.05)

    with pytest.raises(Unavailable, match="'by_city': 'CREATING'"):
        create(table)


@pytest.mark.parametrize("code", ["ResourceInUseException", "LimitExceededException"])
def test_createtables_waits_while_tables_are_changed_elsewhere(
    bare: Table, proxy: FaultProxy, impatient: float, code: str
) -> None:
    reads: list[int] = []

    def is_first(_body: dict[str, Any]) -> bool:
        reads.append(sum(each.operation == "DescribeTable" for each in proxy.seen))
        return reads[-1] == reads[0]

    proxy.plan("UpdateTable", Answer(400, code), ALWAYS, when=is_first)

    assert create(bare) == created(bare, BY_CITY, BY_TOWN)


def test_a_lost_reply_and_another_process_create_an_index_once(
    bare: Table, proxy: FaultProxy, at_once: Callable[..., list[Any]]
) -> None:
    proxy.plan("UpdateTable", DropReply())

    done = at_once(lambda _number: create(bare))

    assert stored_indexes(bare) == {"by_city", "by_town"}
    sentences = [sentence for each in done for sentence in each]
    assert len(sentences) == len(set(sentences)) <= 2


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (replace(BY_CITY, key=(CITY,)), "city (S) with ALL"),
        (replace(BY_CITY, projection="KEYS_ONLY"), "city (S), age (N) with KEYS_ONLY"),
    ],
)
def test_an_index_with_another_definition_is_an_error_that_names_both(
    table: Table, changed: Index, text: str
) -> None:
    create(table)

    with pytest.raises(TableMismatch) as caught:
        create(replace(table, indexes=(changed,)))

    assert str(caught.value) == (
        f"The table {table.name} has the index by_city on city (S), age (N) with ALL; "
        f"the models need {text}."
    )


# Commands and checks ------------------------------------------------------------------------------


def test_a_missing_index_and_one_that_is_being_built_are_found(
    bare: Table, engine: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(table: Table = bare) -> list[tuple[str | None, str]]:
        monkeypatch.setattr(checks, "all_tables", lambda: [table])
        messages = run_checks(tags=["dynamodb"], include_deployment_checks=True)
        return [(each.id, each.msg) for each in messages]

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


def test_createtables_says_what_it_waits_for(
    bare: Table, engine: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(createtables, "all_tables", lambda: [bare])
    proxy.plan("DescribeTable", building(engine, "by_city"), when=updated(proxy, 1))
    out = StringIO()

    call_command("createtables", stdout=out)

    waited, *done = out.getvalue().splitlines()
    assert re.search("by_city .* CREATING", waited)
    assert done == created(bare, BY_CITY, BY_TOWN)


def test_a_template_has_the_indexes_and_the_types_of_their_keys(table: Table) -> None:
    [resource] = template([table])["Resources"].values()

    types = {"pk": "S", "city": "S", "age": "N", "town": "S"}
    assert resource["Properties"]["AttributeDefinitions"] == [
        {"AttributeName": name, "AttributeType": kind} for name, kind in types.items()
    ]
    assert resource["Properties"]["GlobalSecondaryIndexes"] == [
        {
            "IndexName": "by_city",
            "KeySchema": [
                {"AttributeName": "city", "KeyType": "HASH"},
                {"AttributeName": "age", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        },
        {
            "IndexName": "by_town",
            "KeySchema": [{"AttributeName": "town", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["age", "name"]},
        },
    ]
