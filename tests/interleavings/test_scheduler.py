"""The scheduler runs every schedule once, and finds broken operations."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from dynamo.client.sending import send
from sequences import next_value
from sequences.models import Counter
from tests.emptying import empty
from tests.interleavings.conftest import Explore
from tests.interleavings.operations import DEAD, pass_by
from tests.interleavings.scheduler import Scenario, explore as explore_without_engine
from tests.items import put_item, stored_item

TABLE = "counters"


@pytest.mark.parametrize("lengths", [(1, 1), (4, 4), (1, 2, 3)])
def test_every_order_of_steps_is_run_once(lengths: Sequence[int]) -> None:
    seen: list[str] = []

    def make() -> Scenario:
        seen.append("")

        def walk(name: str, length: int) -> None:
            for _ in range(length):
                pass_by("a step")
                seen[-1] += name

        return Scenario([partial(walk, name, n) for name, n in zip("abc", lengths, strict=False)])

    count = explore_without_engine(make)

    orders = math.factorial(sum(lengths)) // math.prod(map(math.factorial, lengths))
    assert count == orders == len(set(seen)) == len(seen)


# Faults -------------------------------------------------------------------------------------------


def counted(*acts: Callable[[], object]) -> Scenario:
    """Scenario that count a counter up."""

    def expects(outcomes: list[Any]) -> None:
        item = stored_item(TABLE, counterName="toy")
        stored = int(item.get("currentValue", {"N": "0"})["N"])
        seen.append((*(str(outcome)[:36] for outcome in outcomes), stored))

    empty(TABLE)
    return Scenario(acts, expects)


def count_up() -> int:
    """The next number, by an ADD, which is not repeated after a lost reply."""
    request = {
        "TableName": TABLE,
        "Key": {"counterName": {"S": "toy"}},
        "UpdateExpression": "ADD currentValue :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
        "ReturnValues": "UPDATED_NEW",
    }
    return int(send("UpdateItem", request)["Attributes"]["currentValue"]["N"])


seen: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()


LOST = "DynamoDB gave no answer to UpdateIte"


def test_a_request_with_a_lost_answer_arrives_or_never_does(explore: Explore) -> None:
    assert explore(lambda: counted(count_up), losses=1) == 3

    assert sorted(seen) == [("1", 1), (LOST, 0), (LOST, 1)]


def test_an_operation_dies_before_or_after_its_request(explore: Explore) -> None:
    def twice() -> int:
        count_up()
        return count_up()

    assert explore(lambda: counted(twice), deaths=1) == 3

    assert sorted(seen) == [("2", 2), (DEAD, 0), (DEAD, 1)]


def test_faults_of_two_operations_are_all_combined(explore: Explore) -> None:
    assert explore(lambda: counted(count_up, count_up), losses=1, deaths=1) == 26

    assert sorted(item for item in seen if LOST not in item and DEAD not in item) == [
        ("1", "2", 2),
        ("2", "1", 2),
    ]


def test_callers_that_share_a_request_wait_for_the_steps_of_the_first(explore: Explore) -> None:
    # The first sends at once, and the two others share the next request.
    assert explore(lambda: counted(*[lambda: next_value("toy")] * 3)) == 1
    assert seen == [("1", "2", "3", 3)]


# Broken operations are found ----------------------------------------------------------------------


def look_then_put(owner: str) -> bool:
    """A broken registration: it reads whether the name is free, and then takes it."""
    key = {"counterName": {"S": "name#ann"}}
    if stored_item(Counter.table(), **key):
        return False
    put_item(Counter.table(), **key, owner=owner)
    return True


def registering() -> Scenario:
    """Two registrations of one name; the rule is that exactly one succeeds."""

    def expects(outcomes: list[Any]) -> None:
        assert sorted(outcomes) == [False, True]

    empty(TABLE)
    return Scenario([partial(look_then_put, owner) for owner in ("first", "second")], expects)


def test_a_registration_that_reads_before_it_writes_is_found(explore: Explore) -> None:
    with pytest.raises(AssertionError) as caught:
        explore(registering)

    assert caught.value.__notes__ == [
        "The schedule:\n"
        "  0: GetItem counters\n"
        "  1: GetItem counters\n"
        "  0: PutItem counters\n"
        "  1: PutItem counters"
    ]
