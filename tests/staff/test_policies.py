"""The policies in deploy/: every table has its rights, and no page may change the record."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dynamo.tables import all_tables
from locks.lock import Lock, claim_once
from staff.runs import KINDS
from tests.commands import ROOT
from tests.factories import make_user
from tests.pages import Page
from tests.requests import Requests
from tests.session_maps import begun
from tests.staff.scenes import (
    WHY,
    let_in,
    make_staff,
    page_of,
    recorded_actions,
    runs_under_way,
)
from tests.waiting import wait_until

PREFIX = "arn:aws:dynamodb:REGION:ACCOUNT:table/PREFIX"


def rights(policy: str) -> Iterator[tuple[str, str]]:
    """Each table by its name, with an action that is allowed on it."""
    statements = json.loads((ROOT / "deploy" / f"iam-{policy}.json").read_text())["Statement"]
    for statement in statements:
        for resource in _listed(statement["Resource"]):
            for action in _listed(statement["Action"]):
                yield resource.removeprefix(PREFIX), action.removeprefix("dynamodb:")


def rights_for(requests: Requests) -> Iterator[tuple[str, str]]:
    """Each table with a right that these need; a transaction needs those of its actions."""
    for operation, request in zip(requests.operations, requests.requests, strict=True):
        if "TransactItems" not in request:
            yield request["TableName"], operation
        for item in request.get("TransactItems", ()):
            for action, details in item.items():
                yield details["TableName"], _RIGHTS_OF_ACTIONS[action]


# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
_RIGHTS_OF_ACTIONS = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}


def _listed(one_or_more: str | list[str]) -> list[str]:
    return [one_or_more] if isinstance(one_or_more, str) else one_or_more


@pytest.mark.parametrize("policy", ["site", "operator"])
def test_a_policy_names_every_table_and_no_other(policy: str) -> None:
    named = {table for table, _action in rights(policy)}

    # Other tests declare tables of their own.
    ours = {table.base_name for table in all_tables() if not table.base_name.startswith("test")}
    assert named == ours


def test_the_site_may_add_to_the_record_and_read_it_and_nothing_else() -> None:
    allowed = {action for table, action in rights("site") if table == "staffactions"}

    assert allowed == {"PutItem", "Query"}


def test_the_site_makes_and_drops_no_table() -> None:
    assert not {action for _table, action in rights("site") if action.endswith("Table")}


def test_the_record_and_the_results_are_not_for_commands_to_write() -> None:
    writes = {"BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem"}

    allowed = {table for table, action in rights("operator") if action in writes}

    assert not {"reports", "staffactions"} & allowed


@pytest.mark.usefixtures("engine")
def test_what_pages_of_staff_send_is_allowed(requests_sent: Requests) -> None:
    client, bob = let_in(make_staff()), make_user(username="bob")
    session = begun(bob)
    Lock("nightly", lease_seconds=600).acquire()
    claim_once("import")
    requests_sent.clear()

    client.post("/staff/", {"who": "bob"})
    client.get(page_of(bob))
    client.post(page_of(bob, "sessions", session, "end"), WHY)
    client.post(page_of(bob, "deactivate"), WHY)
    for name in ("nightly", "import"):
        holder = Page(client.get(f"/staff/lock/?name={name}")).value("holder")
        client.post(f"/staff/lock/?name={name}", WHY | {"holder": holder})
    for kind in KINDS:
        client.post(f"/staff/runs/{kind}/")
        wait_until(lambda: not runs_under_way())
    client.get("/staff/record/")

    needed = set(rights_for(requests_sent))
    assert recorded_actions() == ["endSession", "deactivate", *["breakLock"] * 2, *["startRun"] * 3]
    assert {"ConditionCheckItem", "DeleteItem", "Scan"} <= {action for _table, action in needed}
    assert needed <= set(rights("site"))
