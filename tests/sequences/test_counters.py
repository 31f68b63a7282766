"""Counters: values, names, arguments, costs, and many callers at the same time."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from dynamo import Unavailable
from dynamo.runtime.deadline import within
from sequences import (
    CounterContended,
    NotACounter,
    ReservedName,
    Sequence,
    counters,
    delete_counter,
    last_value,
    next_value,
    next_values,
    numbers_given,
)
from sequences.counters import Strategy
from sequences.models import Counter as CounterItem
from tests.faults.kinds import CloseBefore, DropReply, Fault, Meanwhile, TimeOut
from tests.faults.proxy import FaultProxy
from tests.items import put_item, stored_item
from tests.numbered import Ticket, new_series, ticket
from tests.requests import Requests
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")

BOTH: list[Strategy] = ["atomic", "optimistic"]
both = pytest.mark.parametrize("strategy", BOTH)


def store(name: str, value: dict[str, Any]) -> None:
    item = {"counterName": {"S": name}, "currentValue": value}
    put_item(CounterItem.table(), **item)


def stored(name: str) -> dict[str, Any] | None:
    return stored_item(CounterItem.table(), counterName=name).get("currentValue")


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
        # Several numbers come as one range.
        ((), [range(1, 5), range(5, 6), range(6, 9), 9]),
        ((10, 3), [range(10, 20, 3), range(22, 23), range(25, 32, 3), 34]),
        ((0, -2), [range(0, -7, -2), range(-8, -9, -1), range(-10, -15, -2), -16]),
    ],
)
def test_a_sequence_follows_its_initial_value_increment_and_reset_value(
    strategy: Strategy, settings: tuple[int, ...], expected: list[Any]
) -> None:
    sequence = Sequence("a", *settings, strategy=strategy)

    one_by_one = iter(sequence)
    drawn = [
        sequence.next_values(len(item)) if isinstance(item, range) else next(one_by_one)
        for item in expected
    ]

    assert drawn == expected
    assert sequence.last_value() == last_value("a") == expected[-1]
    assert sequence.delete() is True


def test_both_strategies_count_one_counter_whose_initial_value_is_then_ignored() -> None:
    assert [next_value("a", strategy=strategy) for strategy in BOTH * 3] == [1, 2, 3, 4, 5, 6]
    assert next_value("a", 1000) == 7


def test_a_counter_tells_its_last_value_and_starts_again_once_it_is_deleted() -> None:
    assert last_value("a") is None
    next_values(5, "a")
    assert last_value("a") == last_value("a") == 5

    assert delete_counter("a") is True

    assert delete_counter("a") is False
    assert last_value("a") is None
    assert next_value("a") == 1


@both
def test_a_counter_beyond_its_limit_starts_over(strategy: Strategy) -> None:
    store("a", {"N": "100"})

    assert next_value("a", reset_value=10, strategy=strategy) == 1


@pytest.mark.fault_of("moto", "stores numbers of 39 digits and answers 500 to the next Scan")
@pytest.mark.fault_of("ministack", "rounds to 28 digits")
@both
@pytest.mark.parametrize(
    ("last", "count"),
    [(10**38 - 1, 1), (5 * 10**37 + 1, 6 * 10**37 + 7)],
    ids=["a sum that DynamoDB can store", "a sum of 39 digits"],
)
def test_numbers_are_exact_up_to_38_digits(strategy: Strategy, last: int, count: int) -> None:
    store("a", {"N": str(last - 1)})

    assert next_value("a", strategy=strategy) == last
    for _again in range(3):
        with pytest.raises(OverflowError, match="'a' would pass the 38 digits"):
            next_values(count, "a", strategy=strategy)


@both
@pytest.mark.parametrize(
    "value", [{"S": "7"}, {"L": [{"N": "1"}]}, {"NULL": True}, {"NS": ["1"]}, {"N": "1.5"}], ids=str
)
def test_a_counter_holds_a_whole_number(strategy: Strategy, value: dict[str, Any]) -> None:
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
    put_item(CounterItem.table(), **item)

    assert last_value("a") is None
    assert next_value("a", strategy=strategy) == 1


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "🦆" * 512,
        "a\x00b\r\n\u2028\u202e\ufeff",
        ":span #n currentValue",
        "INVOICES#x",
        "invoices",
        # They resemble the names of series.
        *("testTickets", "testTicket#2026", "other#testTickets#1"),
    ],
)
def test_a_name_may_have_any_character(name: str) -> None:
    for number, strategy in enumerate(BOTH, start=1):
        assert next_value(name, strategy=strategy) == number
    assert last_value(name) == 2
    assert delete_counter(name)


CALLS: list[Callable[[str], object]] = [
    next_value,
    lambda name: next_value(name, strategy="optimistic"),
    lambda name: next_value(name, reset_value=5),
    lambda name: next_values(2, name),
    last_value,
    delete_counter,
    Sequence,
]


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
    requests_sent: Requests, name: Any, error: type[Exception], reason: str
) -> None:
    for call in CALLS:
        with pytest.raises(error, match=reason):
            call(name)

    assert requests_sent.operations == []


WRONG: list[tuple[Callable[..., object], str]] = [
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
    (lambda **how: Sequence("a", reset_value=5, **how).next_values(2), "one by one"),
    (lambda strategy: next_value("a", strategy=strategy[:3]), "atomic or optimistic, not"),
    # Numbers that are not whole.
    (lambda **how: next_value("a", 2.5, **how), "'float'"),
    (lambda **how: next_value("a", increment=2.5, **how), "'float'"),
    (lambda **how: next_value("a", reset_value=2.5, **how), "'float'"),
    (lambda **how: next_values(2.5, "a", **how), "'float'"),
]


@pytest.mark.parametrize(("call", "reason"), WRONG)
def test_contradictory_arguments_are_refused_and_nothing_is_written(
    call: Callable[..., object], reason: str
) -> None:
    for strategy in BOTH:
        with pytest.raises((ValueError, TypeError), match=reason):
            call(strategy=strategy)

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


def test_a_signal_tells_what_each_request_gave() -> None:
    given: list[tuple[Any, ...]] = []

    def note(sender: Any, kind: str, callers: int, numbers: int, **_signal: Any) -> None:
        given.append((sender, kind, callers, numbers))

    numbers_given.connect(note)
    try:
        next_values(3, "a")
        next_value("b", reset_value=10)
        ticket(new_series())
    finally:
        numbers_given.disconnect(note)

    counted = [(None, "counter", 1, 3), (None, "counter", 1, 1)]
    assert given == [*counted, (Ticket, "series", 1, 1)]


@pytest.mark.parametrize("how", [{"strategy": "optimistic"}, {"reset_value": 10}])
def test_contention_until_the_deadline_is_an_error(proxy: FaultProxy, how: dict[str, Any]) -> None:
    next_value("a")
    others = itertools.cycle("23")
    # Others are faster: at the limit before it counts up, below it before the counter is set.
    proxy.plan("UpdateItem", Meanwhile(lambda: store("a", {"N": next(others)})), 999, when=sets)
    proxy.plan("UpdateItem", Meanwhile(lambda: store("a", {"N": "9"})), 999)

    with pytest.raises(CounterContended, match="'a' is too busy"), within(0.3):
        next_value("a", **how)

    assert counters._combiner._queues == {}


# Requests that fail -------------------------------------------------------------------------------


#: Faults, and which number comes next: 2 if the request was carried out without its caller.
without_reply = pytest.mark.parametrize(
    ("fault", "following"), [(DropReply(), 2), (TimeOut(), 2), (CloseBefore(), 1)]
)


@without_reply
def test_an_atomic_request_without_a_reply_is_not_repeated_and_its_number_never_drawn_again(
    proxy: FaultProxy, fault: Fault, following: int
) -> None:
    proxy.plan("UpdateItem", fault)

    with pytest.raises(Unavailable) as unavailable:
        next_value("a")

    assert unavailable.value.maybe_written
    assert proxy.count("UpdateItem") == 1
    assert next_value("a") == following


@without_reply
def test_an_optimistic_write_without_a_reply_is_repeated_and_a_skipped_number_not_drawn(
    proxy: FaultProxy, fault: Fault, following: int
) -> None:
    proxy.plan("UpdateItem", fault)

    assert next_value("a", strategy="optimistic") == following
    assert last_value("a") == following


@pytest.mark.parametrize("count", [1, 3])
def test_an_optimistic_draw_that_collides_is_repeated(proxy: FaultProxy, count: int) -> None:
    proxy.plan("UpdateItem", Meanwhile(lambda: rival("a")))

    assert next_values(count, "a", strategy="optimistic") == range(2, count + 2)
    assert proxy.count("GetItem") == 2


def rival(name: str) -> int:
    """Draw as another process: with other settings, it does not share our request."""
    return next_value(name, increment=2, initial_value=1)


@pytest.mark.parametrize(
    "fault", [DropReply(), Meanwhile(lambda: draw_below_10())], ids=["lost", "overtaken"]
)
def test_a_counter_at_its_limit_starts_over_once(proxy: FaultProxy, fault: Fault) -> None:
    next_values(9, "a")
    # It is set to 1 by our request whose reply is lost, or by another caller.
    proxy.plan("UpdateItem", fault, when=sets)

    assert [draw_below_10(), draw_below_10()] == [2, 3]


def draw_below_10() -> int:
    return next_value("a", reset_value=10)


def wait_until_others_wait(count: int) -> None:
    queues = counters._combiner._queues
    wait_until(lambda: sum(len(queue.waiting) for queue in queues.values()) >= count)


def sets(body: dict[str, Any]) -> bool:
    """Whether the update sets the counter, instead of counting it up."""
    return bool(body["UpdateExpression"] == "SET #0 = :0")


@both
def test_callers_that_wait_share_one_request(proxy: FaultProxy, strategy: Strategy) -> None:
    held = threading.Event()
    proxy.plan("UpdateItem", Meanwhile(lambda: held.wait(120)))
    with ThreadPoolExecutor(16) as pool:
        drawing = [
            pool.submit(next_values, count, "a", strategy=strategy) for count in range(1, 17)
        ]
        wait_until_others_wait(15)
        held.set()
        drawn = [future.result(120) for future in drawing]

    assert proxy.count("UpdateItem") == 2
    assert [len(numbers) for numbers in drawn] == list(range(1, 17))
    assert sorted(itertools.chain(*drawn)) == list(range(1, 137))


def test_only_the_caller_that_would_pass_38_digits_is_refused(proxy: FaultProxy) -> None:
    first = 9 * 10**37

    def draw(count: int) -> range:
        return next_values(count, "a", first, strategy="optimistic")

    held = threading.Event()
    proxy.plan("UpdateItem", Meanwhile(lambda: held.wait(120)))
    with ThreadPoolExecutor(3) as pool:
        sending = pool.submit(draw, 1)
        waiting = pool.submit(draw, 2)
        wait_until_others_wait(1)
        too_many = pool.submit(draw, 2 * 10**37)
        with suppress(TimeoutError):
            too_many.exception(1)
        held.set()

        with pytest.raises(OverflowError):
            too_many.result(120)
        drawn = [*sending.result(120), *waiting.result(120)]

    assert sorted(drawn) == [first, first + 1, first + 2]


def test_a_repeated_deletion_may_return_false(proxy: FaultProxy) -> None:
    next_value("a")
    proxy.plan("DeleteItem", DropReply())

    assert delete_counter("a") is False
    assert last_value("a") is None
