"""Counters when requests fail: no number is drawn twice."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from dynamo.exceptions import Unavailable
from sequences._internal import counters
from sequences._internal.counters import (
    Strategy,
    delete_counter,
    last_value,
    next_value,
    next_values,
)
from tests.faults.kinds import CloseBefore, DropReply, Fault, Meanwhile, TimeOut
from tests.faults.proxy import FaultProxy
from tests.waiting import wait_until

BOTH: list[Strategy] = ["atomic", "optimistic"]
both = pytest.mark.parametrize("strategy", BOTH)

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
def test_an_optimistic_draw_that_collides_draws_the_next_numbers(
    proxy: FaultProxy, count: int
) -> None:
    proxy.plan("UpdateItem", Meanwhile(lambda: rival("a")))

    assert next_values(count, "a", strategy="optimistic") == range(2, count + 2)
    assert proxy.count("GetItem") == 2


def rival(name: str) -> int:
    """Draw as another process: with other settings, it does not share our request."""
    return next_value(name, increment=2, initial_value=1)


def test_a_lost_reply_at_the_limit_does_not_start_over_twice(proxy: FaultProxy) -> None:
    next_values(9, "a")
    proxy.plan("UpdateItem", DropReply(), when=lambda body: starts_over(body))

    # The counter is at 1 by our own request or by another one, so 1 is skipped.
    assert next_value("a", reset_value=10) == 2


def test_another_starts_over_just_before_us(proxy: FaultProxy) -> None:
    next_values(9, "a")
    proxy.plan(
        "UpdateItem",
        Meanwhile(lambda: next_value("a", reset_value=10)),
        when=lambda body: starts_over(body),
    )

    assert next_value("a", reset_value=10) == 2
    assert next_value("a", reset_value=10) == 3


def wait_until_others_wait(count: int) -> None:
    queues = counters._combiner._queues
    wait_until(lambda: sum(len(queue.waiting) for queue in queues.values()) >= count)


def starts_over(body: dict[str, Any]) -> bool:
    """Whether the update sets the counter, instead of counting it up."""
    return bool(body["UpdateExpression"] == "SET #0 = :0")


def test_a_leader_that_fails_fails_alone(proxy: FaultProxy) -> None:
    def draw(_number: int) -> int | None:
        try:
            return next_value("a")
        except Unavailable:
            return None

    held = threading.Event()
    proxy.plan("UpdateItem", Meanwhile(lambda: held.wait(120)))
    proxy.plan("UpdateItem", DropReply())
    with ThreadPoolExecutor(16) as pool:
        drawing = [pool.submit(draw, number) for number in range(16)]
        wait_until_others_wait(15)
        held.set()
        drawn = [future.result(120) for future in drawing]

    assert drawn.count(None) == 1
    numbers = [number for number in drawn if number is not None]
    assert len(set(numbers)) == 15
    # One alone, the fifteen whose leader fails, and the other fourteen again.
    assert proxy.count("UpdateItem") == 3
    assert next_value("a") == max(numbers) + 1


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
        sending, waiting = pool.submit(draw, 1), pool.submit(draw, 2)
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
