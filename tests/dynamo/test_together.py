"""Requests that are sent at the same time."""

import threading
from functools import partial
from typing import Any

import pytest

from dynamo import Unavailable, collect
from dynamo.client.sending import send
from dynamo.runtime.deadline import page_deadline, page_seconds_left
from dynamo.runtime.threads import THREADS, together
from tests.faults.kinds import Delay
from tests.faults.proxy import FaultProxy
from tests.forked import in_a_child
from tests.requests import Requests


def read() -> Any:
    return send("GetItem", {"TableName": "cache", "Key": {"key": {"S": "none"}}})


def test_the_results_are_in_order_also_of_nested_calls() -> None:
    def outer(number: int) -> tuple[int, ...]:
        return together(*[lambda: number] * THREADS)

    found = together(*(partial(outer, number) for number in range(THREADS)))

    assert found == tuple((number,) * THREADS for number in range(THREADS))


def test_calls_share_the_tally_and_the_deadline(engine: str) -> None:
    with collect() as tally, page_deadline(100):
        _one, _two, left = together(read, read, page_seconds_left)

    assert tally.requests == 2
    assert 90 < left <= 100


def test_a_page_that_is_over_sends_nothing(engine: str, requests_sent: Requests) -> None:
    with page_deadline(-1), pytest.raises(Unavailable):
        together(read, read, read)

    assert requests_sent.operations == []


def test_calls_are_sent_together(proxy: FaultProxy, requests_sent: Requests) -> None:
    proxy.plan("GetItem", Delay(0.5), times=3)

    together(read, read, read)

    assert requests_sent.round_trips == 1


@pytest.mark.parametrize("failing", [{0}, {1}, {2}, {1, 2}])
def test_the_first_error_is_raised_after_all_calls_have_ended(failing: set[int]) -> None:
    under_way = {0, 1, 2}
    all_began = threading.Barrier(3)

    def call(number: int) -> None:
        all_began.wait(60)
        if number not in failing:
            threading.Event().wait(0.05)
        under_way.discard(number)
        if number in failing:
            raise LookupError(number)

    with pytest.raises(LookupError) as raised:
        together(*(partial(call, number) for number in range(3)))

    assert (raised.value.args, under_way) == ((min(failing),), set())


def test_without_a_free_thread_the_caller_makes_its_calls() -> None:
    busy = threading.Barrier(THREADS + 1)
    done = threading.Event()

    def hang() -> None:
        busy.wait(60)
        done.wait(60)

    hanging = threading.Thread(target=together, args=[int, *[hang] * THREADS])
    hanging.start()
    busy.wait(60)
    try:
        assert together(threading.get_ident, threading.get_ident) == (threading.get_ident(),) * 2
    finally:
        done.set()
        hanging.join()


def test_a_forked_child_has_threads_of_its_own() -> None:
    together(int, int)

    assert in_a_child(lambda: together(int, int, int)) == 0
