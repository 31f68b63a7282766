"""The policies in deploy/: every table has its rights, and no page may change the record."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dynamo.tables import all_tables
from tests.commands import ROOT

PREFIX = "arn:aws:dynamodb:REGION:ACCOUNT:table/PREFIX"


def rights(policy: str) -> Iterator[tuple[str, str]]:
    """Each table by its name, with an action that is allowed on it."""
    statements = json.loads((ROOT / "deploy" / f"iam-{policy}.json").read_text())["Statement"]
    for statement in statements:
        for resource in _listed(statement["Resource"]):
            for action in _listed(statement["Action"]):
                yield resource.removeprefix(PREFIX), action.removeprefix("dynamodb:")


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
