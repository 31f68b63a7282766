"""Updates as data: the request, whether it may be repeated, and whether it is done."""

import pytest
from pynamodb.expressions.operand import Path

from dynamo.wire.updates import Update
from tests.items import Item

STORED: Item = {
    "a": {"S": "1"},
    "map": {"M": {"key": {"N": "2.0"}}},
    "numbers": {"NS": ["1.0", "2"]},
    "texts": {"SS": ["a", "b"]},
    "list": {"L": [{"M": {"n": {"N": "2.0"}}}, {"S": "1"}]},
}
ONE, TWO = {"S": "1"}, {"N": "2"}


def test_a_request_has_all_changes_and_the_condition() -> None:
    update = Update(
        {"a": ONE, ("map", "key"): TWO, "b": None},
        add={"n": TWO},
        count={"fence": ({"N": "100"}, {"N": "1"})},
    )
    address = {"TableName": "t", "Key": {"pk": ONE}}

    request = update.request(address, "#k = :k", names={"#k": "data"}, values={":k": ONE})

    assert request["UpdateExpression"] == (
        "SET #0 = :0, #1.#2 = :1, #3 = if_not_exists(#3, :2) + :3 REMOVE #4 ADD #5 :4"
    )
    assert request["ConditionExpression"] == "#k = :k"
    names = request["ExpressionAttributeNames"]
    assert [names[f"#{n}"] for n in range(6)] == ["a", "map", "key", "fence", "b", "n"]
    assert names["#k"] == "data"
    assert request["ExpressionAttributeValues"] == {
        ":0": ONE,
        ":1": TWO,
        ":2": {"N": "100"},
        ":3": {"N": "1"},
        ":4": TWO,
        ":k": ONE,
    }


@pytest.mark.parametrize(
    ("update", "is_repeatable", "is_done"),
    [
        (Update({"a": ONE}), True, True),
        (
            Update({("map", "key"): TWO, "b": None, ("map", "b"): None, ("a", "b"): None}),
            True,
            True,
        ),
        (Update({"numbers": {"NS": ["2.0", "1"]}, "texts": {"SS": ["b", "a"]}}), True, True),
        (Update({"list": {"L": [{"M": {"n": TWO}}, ONE]}}), True, True),
        (Update({"list": {"L": [ONE, {"M": {"n": TWO}}]}}), True, False),
        (Update({"a": TWO}), True, False),
        (Update({"b": ONE}), True, False),
        (Update({("map", "b"): TWO}), True, False),
        (Update({"a": ONE, ("map", "key"): None}), True, False),
        (Update({"a": ONE}, add={"b": TWO}), False, False),
        (Update(count={"n": (TWO, TWO)}), False, False),
    ],
)
def test_an_update_that_does_not_count_is_repeatable_and_known_by_the_values_that_it_leaves(
    update: Update, is_repeatable: bool, is_done: bool
) -> None:
    assert (update.is_repeatable, update.is_done(STORED)) == (is_repeatable, is_done)
    assert not update.is_done(None)


def test_an_action_that_depends_on_another_value_is_refused() -> None:
    with pytest.raises(TypeError, match="sets, removes or adds"):
        Update.of_actions([Path(["a"]).set(Path(["b"]))])
