"""Counters: values, names, arguments, costs, and many callers at the same time."""

import itertools
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dynamo._internal.client.deadline import within
from dynamo._internal.client.sending import send
from sequences._internal import counters
from sequences._internal.counters import (
    Sequence,
    Strategy,
    delete_counter,
    last_value,
    next_value,
    next_values,
)
from sequences.exceptions import CounterContended, NotACounter, ReservedName
from sequences.models import Counter as CounterItem
from tests.numbered import Ticket
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

BOTH: list[Strategy] = ["atomic", "optimistic"]
both = pytest.mark.parametrize("strategy", BOTH)


def store(name: str, value: dict[str, Any]) -> None:
    item = {"counterName": {"S": name}, "currentValue": value}
    send("PutItem", {"TableName": CounterItem.table(), "Item": item})


def stored(name: str) -> dict[str, Any] | None:
    request = {"TableName": CounterItem.table(), "Key": {"counterName": {"S": name}}}
    value: dict[str, Any] | None = send("GetItem", request).get("Item", {}).get("currentValue")
    return value


@both
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((1000,), [1000, 1001, 1002]),
        ((0,), [0, 1, 2]),
        ((-7,), [-7, -6, -5]),
        ((1, 5), [1, 6, 11]),
        ((5, 5), [5, 10, 15]),
        ((0, -1), [0, -1, -2]),
        ((3, -2), [3, 1, -1]),
        ((10**30, -(10**29)), [10**30, 9 * 10**29, 8 * 10**29]),
        # Instead of reaching the last of these settings, it starts over.
        ((1, 1, 4), [1, 2, 3, 1, 2, 3, 1]),
        ((0, 1, 2), [0, 1, 0, 1, 0]),
        ((1, 1, 2), [1, 1, 1]),
        ((0, 2, 5), [0, 2, 4, 0]),
        ((3, -1, 0), [3, 2, 1, 3]),
        ((-1, -2, -6), [-1, -3, -5, -1]),
    ],
)
def test_a_sequence_follows_its_initial_value_increment_and_reset_value(
    strategy: Strategy, settings: tuple[int, ...], expected: list[int]
) -> None:
    sequence = Sequence("a", *settings, strategy=strategy)

    assert list(itertools.islice(sequence, len(expected))) == expected
    assert sequence.last_value() == last_value("a") == expected[-1]
    assert sequence.delete() is True


@both
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((1, 1), [range(1, 5), range(5, 6), range(6, 9)]),
        ((10, 3), [range(10, 20, 3), range(22, 23), range(25, 32, 3)]),
        ((0, -2), [range(0, -7, -2), range(-8, -9, -1), range(-10, -15, -2)]),
    ],
)
def test_several_numbers_come_as_one_range(
    strategy: Strategy, settings: tuple[int, int], expected: list[range]
) -> None:
    sequence = Sequence("a", *settings, strategy=strategy)

    assert [sequence.next_values(count) for count in (4, 1, 3)] == expected


def test_both_strategies_count_one_counter() -> None:
    assert [next_value("a", strategy=strategy) for strategy in BOTH * 3] == [1, 2, 3, 4, 5, 6]


def test_the_initial_value_of_an_existing_counter_is_ignored() -> None:
    next_value("a")

    assert next_value("a", 1000) == 2


def test_the_last_value_is_known_and_reading_it_changes_nothing() -> None:
    assert last_value("a") is None
    next_values(5, "a")

    assert last_value("a") == last_value("a") == 5


def test_a_deleted_counter_starts_again() -> None:
    next_values(5, "a")

    assert delete_counter("a") is True
    assert delete_counter("a") is False
    assert last_value("a") is None
    assert next_value("a") == 1


@both
def test_a_counter_beyond_its_limit_starts_over(strategy: Strategy) -> None:
    store("a", {"N": "100"})

    assert next_value("a", reset_value=10, strategy=strategy) == 1


@pytest.mark.fault_of("moto", "loses updates that meet")
@both
def test_a_counter_starts_over_correctly_under_contention(
    at_once: Callable[..., list[Any]], strategy: Strategy
) -> None:
    rounds = [
        at_once(lambda _n: next_value("a", 0, reset_value=5, strategy=strategy), 8)
        for _round in range(5)
    ]

    assert Counter(itertools.chain(*rounds)) == dict.fromkeys(range(5), 8)


def test_a_sequence_that_starts_over_gives_no_ranges() -> None:
    with pytest.raises(ValueError, match="one by one"):
        Sequence("a", reset_value=5).next_values(2)


@pytest.mark.fault_of("moto", "stores numbers of 39 digits and answers 500 to the next Scan")
@pytest.mark.fault_of("ministack", "rounds to 28 digits")
@both
@pytest.mark.parametrize(
    ("last", "count"),
    [(10**38 - 1, 1), (5 * 10**37 + 1, 6 * 10**37 + 7)],
    ids=["a sum that DynamoDB can store", "a sum of 39 digits"],
)
def test_numbers_are_exact_up_to_38_digits_and_refused_beyond(
    strategy: Strategy, last: int, count: int
) -> None:
    store("a", {"N": str(last - 1)})

    assert next_value("a", strategy=strategy) == last
    for _again in range(3):
        with pytest.raises(OverflowError, match="'a' would pass the 38 digits"):
            next_values(count, "a", strategy=strategy)


@both
@pytest.mark.parametrize(
    "value", [{"S": "7"}, {"L": [{"N": "1"}]}, {"NULL": True}, {"NS": ["1"]}, {"N": "1.5"}], ids=str
)
def test_a_value_that_is_not_a_whole_number_is_not_a_counter(
    strategy: Strategy, value: dict[str, Any]
) -> None:
    store("a", value)

    for call in (
        lambda: next_value("a", strategy=strategy),
        lambda: next_values(3, "a", 5, strategy=strategy),
        lambda: last_value("a"),
    ):
        with pytest.raises(NotACounter, match="'a' does not hold a whole number"):
            call()
    if "N" not in value:
        assert stored("a") == value


@pytest.mark.fault_of("moto", "answers 500 to comparing a string with a number")
@both
def test_a_value_that_is_not_a_number_does_not_start_over(strategy: Strategy) -> None:
    store("a", {"S": "x"})

    with pytest.raises(NotACounter):
        next_value("a", reset_value=5, strategy=strategy)

    assert stored("a") == {"S": "x"}


@both
def test_an_item_without_a_number_counts_from_the_initial_value(strategy: Strategy) -> None:
    item = {"counterName": {"S": "a"}, "note": {"S": "mine"}}
    send("PutItem", {"TableName": CounterItem.table(), "Item": item})

    assert last_value("a") is None
    assert next_value("a", strategy=strategy) == 1


@both
@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "🦆" * 512,
        "a\x00b\r\n\u2028\u202e\ufeff",
        ":span #n currentValue",
        "INVOICES#x",
        "invoices",
    ],
)
def test_a_name_may_have_any_character(strategy: Strategy, name: str) -> None:
    assert next_value(name, strategy=strategy) == 1
    assert next_value(name, strategy=strategy) == 2
    assert last_value(name) == 2
    assert delete_counter(name)


@pytest.mark.parametrize("name", ["é" + "e\u0301", "A" + "a", "a" + "a "])
def test_names_that_look_alike_are_different_counters(name: str) -> None:
    one, other = name[:1], name[1:]
    next_value(one)

    assert next_value(other) == 1


CALLS: list[Callable[[str], object]] = [
    next_value,
    lambda name: next_value(name, strategy="optimistic"),
    lambda name: next_value(name, reset_value=5),
    lambda name: next_values(2, name),
    last_value,
    delete_counter,
    Sequence,
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        *((name, ValueError, "A counter's name") for name in ("", "x" * 2049, "é" * 1024 + "e")),
        ("a\ud800b", ValueError, "must be text"),
        *((name, TypeError, "must be text") for name in (1, None, b"tickets")),
        *(
            (name, ReservedName, "reserved")
            for name in (f"{Ticket.table()}#", f"{Ticket.table()}#2026")
        ),
    ],
)
def test_an_unusable_name_is_refused_without_a_request(
    requests_sent: Requests,
    call: Callable[[Any], object],
    name: Any,
    error: type[Exception],
    reason: str,
) -> None:
    with pytest.raises(error, match=reason):
        call(name)

    assert requests_sent.operations == []


@both
@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda **how: next_value("a", increment=0, **how), "must not be 0"),
        (lambda **how: next_value("a", 5, reset_value=5, **how), "beyond initial_value: 5"),
        (lambda **how: next_value("a", 5, reset_value=4, **how), "beyond initial_value: 4"),
        (lambda **how: next_value("a", 5, increment=-1, reset_value=6, **how), "steps of -1"),
        (lambda **how: next_value("a", 10**38, **how), "at most 38 digits"),
        (lambda **how: next_value("a", -(10**38) + 1, increment=10, **how), "at most 38 digits"),
        (lambda **how: next_value("a", increment=-(10**38), **how), "at most 38 digits"),
        (lambda **how: next_value("a", reset_value=10**38, **how), "at most 38 digits"),
        (lambda **how: next_values(0, "a", **how), "1 or more, not 0"),
        (lambda **how: next_values(-1, "a", **how), "1 or more, not -1"),
        (lambda **how: next_values(2, "a", increment=5 * 10**37, **how), "pass 38 digits"),
        (lambda **how: next_values(2, "a", increment=-5 * 10**37, **how), "pass 38 digits"),
        (lambda strategy: next_value("a", strategy=strategy[:3]), "atomic or optimistic, not"),
    ],
)
def test_contradictory_arguments_are_refused_and_nothing_is_written(
    call: Callable[..., object], reason: str, strategy: Strategy
) -> None:
    with pytest.raises(ValueError, match=reason):
        call(strategy=strategy)

    assert stored("a") is None


@pytest.mark.parametrize(
    "call",
    [
        lambda half: next_value("a", half),
        lambda half: next_value("a", increment=half),
        lambda half: next_value("a", reset_value=half),
        lambda half: next_values(half, "a"),
    ],
)
def test_arguments_that_are_not_whole_numbers_are_refused(call: Callable[[float], object]) -> None:
    with pytest.raises(TypeError):
        call(2.5)

    assert stored("a") is None


GET, UPDATE = "GetItem", "UpdateItem"

#: What is done to a counter that has given out 9, its requests, and the units that it is told of.
COSTS: dict[str, tuple[Callable[[], object], list[str], float]] = {
    "atomic": (lambda: next_value("a"), [UPDATE], 1),
    "atomic, of a new counter": (lambda: next_value("b", 10, increment=5), [UPDATE], 1),
    "atomic, many": (lambda: next_values(1_000, "a"), [UPDATE], 1),
    "atomic below a limit": (lambda: next_value("a", reset_value=20), [UPDATE], 1),
    "starting over": (lambda: next_value("a", reset_value=10), [UPDATE, UPDATE], 1),
    "optimistic": (lambda: next_value("a", strategy="optimistic"), [GET, UPDATE], 2),
    "optimistic, many": (lambda: next_values(9, "a", strategy="optimistic"), [GET, UPDATE], 2),
    "reading": (lambda: last_value("a"), [GET], 1),
    "deleting": (lambda: delete_counter("a"), ["DeleteItem"], 1),
}


@pytest.mark.fault_of("moto", "counts half a unit for an update")
@pytest.mark.parametrize(("call", "operations", "units"), COSTS.values(), ids=COSTS)
def test_what_a_call_costs(
    requests_sent: Requests, call: Callable[[], object], operations: list[str], units: float
) -> None:
    store("a", {"N": "9"})
    requests_sent.clear()

    call()

    assert (requests_sent.operations, requests_sent.units) == (operations, units)
    assert all(read["ConsistentRead"] is True for read in requests_sent.of(GET))


@both
def test_ranges_drawn_at_the_same_time_do_not_overlap(
    at_once: Callable[..., list[Any]], strategy: Strategy
) -> None:
    def draw(number: int) -> list[range]:
        return [next_values(number + 1, "a", strategy=strategy) for _round in range(5)]

    ranges = list(itertools.chain(*at_once(draw, 16)))

    numbers = sorted(itertools.chain(*ranges))
    assert numbers == list(range(1, 5 * 136 + 1))
    assert Counter(map(len, ranges)) == dict.fromkeys(range(1, 17), 5)


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_callers_with_other_settings_use_the_same_counter(
    at_once: Callable[..., list[Any]],
) -> None:
    next_value("a", 0)

    drawn = at_once(lambda number: next_value("a", increment=10 if number % 2 else 1), 16)

    assert len(set(drawn)) == 16
    assert last_value("a") == 8 * 10 + 8


def test_pauses_grow_with_each_collision_and_shrink_towards_the_deadline() -> None:
    def longest(collisions: int, passed: float = 0) -> float:
        began = time.monotonic() - passed
        return max(counters._pause_seconds(collisions, began, began + 10_000) for _ in range(200))

    first, last = counters.FIRST_PAUSE_SECONDS, counters.LONGEST_PAUSE_SECONDS
    assert first / 2 < longest(0) <= first < longest(3) <= 8 * first
    assert last / 2 < longest(100) <= last
    assert longest(100, 5_000) < last / 8
    assert longest(100, 10_001) == 0


@pytest.mark.parametrize("how", [{"strategy": "optimistic"}, {"reset_value": 10}])
def test_contention_until_the_deadline_is_an_error_and_no_number_is_drawn(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    next_value("a")
    real_send = send

    def rivals_are_faster(operation: str, request: dict[str, Any], **_how: Any) -> dict[str, Any]:
        if operation == "UpdateItem":
            # At the limit before each ADD, and below it before the counter is to start over.
            at_limit = "reset_value" in how and request["UpdateExpression"] != "SET #0 = :0"
            store("a", {"N": "9" if at_limit else str((last_value("a") or 0) % 7 + 1)})
        return real_send(operation, request)

    monkeypatch.setattr("sequences._internal.counters.send", rivals_are_faster)

    with pytest.raises(CounterContended, match="'a' is too busy"), within(0.3):
        next_value("a", **how)

    assert counters._combiner._queues == {}
