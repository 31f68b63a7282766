"""Callers who wait together are served together; whatever befalls one of them is its own."""

from __future__ import annotations

import dis
import itertools
import os
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise, takewhile
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo import deadline
from dynamo.deadline import operation_ends_at, within
from dynamo.exceptions import Unavailable
from sequences import combining
from sequences.combining import AGAIN, Again, Combiner
from tests.clocks import LeapingClock, stand_in

SECONDS = 120  # until a test that hangs fails


class Served:
    """A `serve` that answers with what was asked, and stops where it is told to."""

    def __init__(self) -> None:
        self.groups: list[list[Any]] = []
        self.threads: list[int] = []
        self.arrived = threading.Semaphore(0)
        self._open = threading.Semaphore(0)
        self.holds = 1
        self.errors: dict[Any, BaseException] = {}
        #: Who is put off once.
        self.again: set[Any] = set()

    def __call__(self, key: str, asks: list[Any]) -> list[Any]:
        self.groups.append(list(asks))
        self.threads.append(threading.get_ident())
        if self.holds:
            self.holds -= 1
            self.arrived.release()
            assert self._open.acquire(timeout=SECONDS)
        if asks[0] in self.errors:
            raise self.errors.pop(asks[0])
        return [self._outcome(f"{key}:{ask}", ask) for ask in asks]

    def _outcome(self, answer: str, ask: Any) -> Any:
        if ask not in self.again:
            return answer
        self.again.remove(ask)
        return AGAIN

    def wait_for_leader(self) -> None:
        assert self.arrived.acquire(timeout=SECONDS)

    def go_on(self) -> None:
        self._open.release()


@pytest.fixture
def served() -> Served:
    return Served()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(32) as pool:
        yield pool


def waiting(combiner: Combiner[Any, Any, Any], key: str = "key") -> int:
    queue = combiner._queues.get(key)
    return len(queue.waiting) if queue else 0


def until(condition: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < ends_at, "it never happened"
        time.sleep(0.001)


def crowd(
    pool: ThreadPoolExecutor, combiner: Combiner[Any, Any, Any], served: Served, *asks: Any
) -> list[Future[Any]]:
    """The first of `asks` is being served; the others wait, in their order."""
    futures = [pool.submit(combiner, "key", asks[0])]
    served.wait_for_leader()
    for count, ask in enumerate(asks[1:], 1):
        futures.append(pool.submit(combiner, "key", ask))
        until(lambda count=count: waiting(combiner) == count)  # type: ignore[misc]
    return futures


def test_one_who_comes_alone_is_served_at_once(served: Served) -> None:
    served.holds = 0
    combiner = Combiner(served)

    assert [combiner("key", ask) for ask in "abc"] == ["key:a", "key:b", "key:c"]
    assert served.groups == [["a"], ["b"], ["c"]]
    assert set(served.threads) == {threading.get_ident()}


def test_all_who_wait_are_served_together_by_the_first_of_them(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abcdef")

    served.go_on()

    assert [future.result(SECONDS) for future in futures] == [f"key:{ask}" for ask in "abcdef"]
    assert served.groups == [["a"], ["b", "c", "d", "e", "f"]]
    assert served.threads[0] != served.threads[1]


def test_keys_do_not_wait_for_each_other(served: Served, pool: ThreadPoolExecutor) -> None:
    combiner = Combiner(served)
    (first,) = crowd(pool, combiner, served, "a")

    assert combiner("other", "b") == "other:b"

    served.go_on()
    assert first.result(SECONDS) == "key:a"


def test_a_group_is_as_large_as_fits_and_keeps_the_order(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    combiner = Combiner(served, fits=lambda asks: min(2, len(asks)))
    futures = crowd(pool, combiner, served, *"abcdef")

    served.go_on()

    assert [future.result(SECONDS) for future in futures] == [f"key:{ask}" for ask in "abcdef"]
    assert served.groups == [["a"], ["b", "c"], ["d", "e"], ["f"]]


@pytest.mark.parametrize("size", [-1, 0])
def test_one_at_least_is_served_whatever_fits_says(
    served: Served, pool: ThreadPoolExecutor, size: int
) -> None:
    combiner = Combiner(served, fits=lambda asks: size)
    futures = crowd(pool, combiner, served, *"abc")

    served.go_on()

    assert [future.result(SECONDS) for future in futures] == ["key:a", "key:b", "key:c"]
    assert served.groups == [["a"], ["b"], ["c"]]


def test_each_gets_its_own_answer_or_its_own_error(pool: ThreadPoolExecutor) -> None:
    held = threading.Event()

    def serve(key: str, asks: list[int]) -> list[int | Exception]:
        assert held.wait(SECONDS)
        return [ValueError(ask) if ask % 2 else ask for ask in asks]

    combiner = Combiner(serve)
    futures = [pool.submit(combiner, "key", ask) for ask in range(8)]
    until(lambda: waiting(combiner) == 7)
    held.set()

    for ask, future in enumerate(futures):
        if ask % 2:
            with pytest.raises(ValueError, match=str(ask)):
                future.result(SECONDS)
        else:
            assert future.result(SECONDS) == ask


def test_no_answer_is_an_answer(pool: ThreadPoolExecutor) -> None:
    combiner: Combiner[str, int, None] = Combiner(lambda _key, asks: [None for _ask in asks])

    futures = [pool.submit(combiner, "key", ask) for ask in range(20)]

    assert [future.result(SECONDS) for future in futures] == [None] * 20


def test_what_a_leader_meets_is_its_own_and_its_followers_are_served_again_in_order(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    served.errors = {"b": ConnectionError("of b")}
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abcd")

    served.go_on()

    with pytest.raises(ConnectionError, match="of b"):
        futures[1].result(SECONDS)
    assert [futures[n].result(SECONDS) for n in (0, 2, 3)] == ["key:a", "key:c", "key:d"]
    assert served.groups == [["a"], ["b", "c", "d"], ["c", "d"]]


def test_followers_of_a_failed_leader_go_before_those_who_came_later(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    served.holds = 2
    served.errors = {"b": ConnectionError()}
    combiner = Combiner(served, fits=lambda asks: min(3, len(asks)))
    futures = crowd(pool, combiner, served, *"abc")
    served.go_on()
    served.wait_for_leader()
    futures += [pool.submit(combiner, "key", "d")]
    until(lambda: waiting(combiner) == 1)

    served.go_on()

    assert futures[3].result(SECONDS) == "key:d"
    assert served.groups == [["a"], ["b", "c"], ["c", "d"]]


def test_where_each_leader_fails_each_gets_its_own_failure(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    served.errors = {ask: ConnectionError(ask) for ask in "abcd"}
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abcd")

    served.go_on()

    assert [str(future.exception(SECONDS)) for future in futures] == list("abcd")
    assert combiner._queues == {}


def test_a_fault_in_fits_hurts_the_leader_alone(served: Served, pool: ThreadPoolExecutor) -> None:
    def fits(asks: list[str]) -> int:
        if asks[0] == "b":
            raise ArithmeticError
        return len(asks)

    combiner = Combiner(served, fits)
    futures = crowd(pool, combiner, served, *"abcd")

    served.go_on()

    assert isinstance(futures[1].exception(SECONDS), ArithmeticError)
    assert [futures[n].result(SECONDS) for n in (0, 2, 3)] == ["key:a", "key:c", "key:d"]


def test_who_is_to_come_again_shares_the_next_request_with_those_who_came_meanwhile(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    served.again = {"a", "c"}
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abc")

    served.go_on()

    assert [future.result(SECONDS) for future in futures] == ["key:a", "key:b", "key:c"]
    # Each of the two was put off once; who leads sends until it is served itself.
    assert served.groups == [["a"], ["a", "b", "c"], ["c"]]
    assert served.threads[0] == served.threads[1]
    assert combiner._queues == {}


def test_who_is_served_need_not_wait_until_its_leader_is(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    served.holds = 3
    served.again = {"b"}
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abc")
    for _turn in "ab":
        served.go_on()
        served.wait_for_leader()

    assert futures[2].result(SECONDS) == "key:c"
    assert not futures[1].done()
    served.go_on()
    assert futures[1].result(SECONDS) == "key:b"
    assert served.groups == [["a"], ["b", "c"], ["b"]]


def test_who_waited_in_vain_leaves_and_the_others_are_served(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, "a", "b")

    with pytest.raises(Unavailable) as unavailable, within(0.05):
        combiner("key", "late")

    assert not unavailable.value.maybe_written
    served.go_on()
    assert [future.result(SECONDS) for future in futures] == ["key:a", "key:b"]
    assert served.groups == [["a"], ["b"]]


def impatient(combiner: Combiner[Any, Any, Any], ask: str, seconds: float) -> Any:
    with within(seconds):
        return combiner("key", ask)


def test_who_leaves_while_its_request_is_under_way_is_told_that_it_may_be_written(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    served.holds = 2
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, "a", "b")
    leaving = pool.submit(impatient, combiner, "c", 0.3)
    until(lambda: waiting(combiner) == 2)
    served.go_on()
    served.wait_for_leader()

    error = leaving.exception(SECONDS)

    assert isinstance(error, Unavailable)
    assert error.maybe_written
    served.go_on()
    assert [future.result(SECONDS) for future in futures] == ["key:a", "key:b"]
    assert combiner._queues == {}


def test_who_was_tried_once_and_then_waits_in_vain_is_told_so_too(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    served.holds = 3
    served.errors = {"b": ConnectionError()}
    # b sends for c and d as well, and fails; c then sends for itself, and d waits on.
    combiner = Combiner(served, fits=lambda asks: 3 if asks[0] == "b" else 1)
    futures = crowd(pool, combiner, served, *"abc")
    leaving = pool.submit(impatient, combiner, "d", 0.5)
    until(lambda: waiting(combiner) == 3)
    for _turn in "ab":
        served.go_on()
        served.wait_for_leader()

    error = leaving.exception(SECONDS)

    assert isinstance(error, Unavailable)
    assert error.maybe_written
    served.go_on()
    assert futures[2].result(SECONDS) == "key:c"
    assert served.groups == [["a"], ["b", "c", "d"], ["c"]]


def test_one_that_left_is_not_served_again(served: Served, pool: ThreadPoolExecutor) -> None:
    served.holds = 2
    served.errors = {"b": ConnectionError()}
    combiner = Combiner(served)
    crowd(pool, combiner, served, "a", "b")
    leaving = pool.submit(impatient, combiner, "c", 0.3)
    until(lambda: waiting(combiner) == 2)
    staying = pool.submit(combiner, "key", "d")
    until(lambda: waiting(combiner) == 3)
    served.go_on()
    served.wait_for_leader()
    assert isinstance(leaving.exception(SECONDS), Unavailable)

    served.go_on()

    assert staying.result(SECONDS) == "key:d"
    assert served.groups == [["a"], ["b", "c", "d"], ["d"]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LeapingClock:
    """The clock of deadlines, which are so far away that a stall does not use them up."""
    leaping = LeapingClock()
    stand_in(leaping, monkeypatch)
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 1000.0)
    return leaping


def test_who_sends_keeps_to_its_own_deadline(clock: LeapingClock) -> None:
    left: list[float] = []

    def serve(key: str, asks: list[str]) -> list[str]:
        left.append(operation_ends_at() - clock.monotonic())
        return asks

    combiner = Combiner(serve)
    with within(500):
        combiner("key", "a")

    assert 0 < left[0] <= 500


def test_who_waited_has_only_the_rest_of_its_time_to_send(
    pool: ThreadPoolExecutor, clock: LeapingClock
) -> None:
    left: dict[str, float] = {}
    held = threading.Event()

    def serve(key: str, asks: list[str]) -> list[str]:
        left[asks[0]] = operation_ends_at() - clock.monotonic()
        if asks == ["a"]:
            assert held.wait(SECONDS)
        return asks

    combiner = Combiner(serve)
    first = pool.submit(combiner, "key", "a")
    until(lambda: "a" in left)
    second = pool.submit(combiner, "key", "b")
    until(lambda: waiting(combiner) == 1)
    clock.leap(500)
    held.set()

    assert (first.result(SECONDS), second.result(SECONDS)) == ("a", "b")
    assert 0 < left["b"] <= 500 < left["a"]


def test_memory_is_given_back(served: Served, pool: ThreadPoolExecutor) -> None:
    served.holds = 0
    combiner = Combiner(served)

    list(pool.map(lambda n: combiner(f"key{n % 50}", n), range(1_000)))

    assert combiner._queues == {}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_a_leader_that_is_ended_takes_nobody_along(
    served: Served, pool: ThreadPoolExecutor, error: BaseException
) -> None:
    served.errors = {"b": error}
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abcd")

    served.go_on()

    assert futures[1].exception(SECONDS) is error
    assert [futures[n].result(SECONDS) for n in (0, 2, 3)] == ["key:a", "key:c", "key:d"]


@pytest.mark.usefixtures("_ctrl_c_raises")
def test_ctrl_c_ends_a_wait_and_takes_nobody_along(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, "a", "b")

    def interrupt() -> None:
        until(lambda: waiting(combiner) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = pool.submit(interrupt)
    with pytest.raises(KeyboardInterrupt):
        combiner("key", "mine")

    interrupting.result(SECONDS)
    assert waiting(combiner) == 1
    served.go_on()
    assert [future.result(SECONDS) for future in futures] == ["key:a", "key:b"]


@pytest.fixture
def _ctrl_c_raises() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@cache
def interruptible(code: CodeType) -> set[int]:
    """The offsets in `code` at which CPython may deliver a signal: after a call, a jump back."""
    steps = list(dis.get_instructions(code))
    return {
        step.offset
        for before, step in pairwise(steps)
        if before.opname.startswith(("CALL", "RESUME", "JUMP_BACKWARD"))
    }


@contextmanager
def interrupted_at(point: int) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt in this thread at the so-many-th point of the combiner's code."""
    seen = [0]

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename != combining.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in interruptible(frame.f_code):
            seen[0] += 1
            if seen[0] == point:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)


def interrupt_one_of_a_crowd(point: int, *, leads: bool) -> bool:
    """Interrupt one caller there, be it a leader or a follower; whether it got that far.

    Whatever it was doing: the others are served, and nothing is left behind.
    """
    began = threading.Event()
    followers: list[Future[str]] = []

    def serve(key: str, asks: list[str]) -> list[str | Again]:
        if asks == ["first"]:
            began.set()
            until(lambda: waiting(combiner) >= (1 if leads else 2))
        elif not followers:
            # They wait while this is sent, or are followers where it is sent by the next leader.
            followers.extend(pool.submit(combiner, "key", ask) for ask in "cd")
            until(lambda: waiting(combiner) >= 2)
            # All but one are in the next request as well.
            return [*asks[:1], *(AGAIN for _ask in asks[1:])] if len(asks) > 1 else [AGAIN]
        return [*asks]

    combiner: Combiner[str, str, str] = Combiner(serve)
    with ThreadPoolExecutor(8) as pool:
        others = [pool.submit(combiner, "key", "first")]
        assert began.wait(SECONDS)
        if not leads:
            others.append(pool.submit(combiner, "key", "ahead"))
            until(lambda: waiting(combiner) == 1)
        with suppress(KeyboardInterrupt), interrupted_at(point) as seen:
            combiner("key", "mine")
        assert combiner("key", "after") == "after"
        assert [other.result(SECONDS) for other in others] == ["first", "ahead"][: len(others)]
        assert [follower.result(SECONDS) for follower in followers] == ["c", "d"]
    assert combiner._queues == {}
    return seen[0] >= point


@pytest.mark.parametrize("leads", [True, False])
def test_an_interruption_at_any_instruction_takes_nobody_along(leads: bool) -> None:
    points = takewhile(
        lambda point: interrupt_one_of_a_crowd(point, leads=leads), itertools.count(1)
    )

    assert sum(1 for _point in points) > 15


def test_a_forked_child_begins_anew(served: Served, pool: ThreadPoolExecutor) -> None:
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abc")

    with warnings.catch_warnings():
        # Python warns of forks in processes with threads, which is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        with within(SECONDS):
            os._exit(0 if combiner("key", "child") == "key:child" else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    served.go_on()
    assert [future.result(SECONDS) for future in futures] == ["key:a", "key:b", "key:c"]


def test_a_child_forked_by_who_sends_ends_in_peace() -> None:
    def serve(key: str, asks: list[str]) -> list[int]:
        return [os.fork()]

    combiner: Combiner[str, str, int] = Combiner(serve)
    child = combiner("key", "a")
    if not child:
        os._exit(0 if combiner._queues == {} else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@given(
    plan=st.lists(
        st.sampled_from(["serve", "fail", "error", "late", "again"]), min_size=1, max_size=40
    ),
    size=st.integers(1, 8),
    threads=st.integers(2, 12),
)
@settings(max_examples=25)
def test_every_caller_gets_what_is_its_own_and_each_ask_is_answered_once(
    plan: list[str], size: int, threads: int
) -> None:
    sending = threading.Lock()
    answered: Counter[int] = Counter()
    put_off: set[int] = set()

    def outcome_of(ask: int) -> int | Exception | Again:
        if plan[ask] == "again" and ask not in put_off:
            put_off.add(ask)
            return AGAIN
        answered[ask] += 1
        return ValueError(ask) if plan[ask] == "error" else ask

    def serve(key: str, asks: list[int]) -> list[int | Exception | Again]:
        assert sending.acquire(blocking=False), "two lead at once"
        try:
            time.sleep(0.0005)
            if plan[asks[0]] == "fail":
                raise ConnectionError(asks[0])
            return [outcome_of(ask) for ask in asks]
        finally:
            sending.release()

    combiner = Combiner(serve, fits=lambda asks: min(size, len(asks)))

    def outcome(ask: int) -> tuple[str, object]:
        try:
            with within(0.0004 if plan[ask] == "late" else SECONDS):
                return "answer", combiner("key", ask)
        except (ConnectionError, ValueError) as error:
            return type(error).__name__, error.args[0]
        except Unavailable as error:
            return "late", error.maybe_written

    with ThreadPoolExecutor(threads) as pool:
        outcomes = list(pool.map(outcome, range(len(plan))))

    for ask, (kind, content) in enumerate(outcomes):
        expected = {
            "serve": {("answer", ask)},
            "again": {("answer", ask)},
            "error": {("ValueError", ask)},
            # Served by another, it does not come to fail.
            "fail": {("ConnectionError", ask), ("answer", ask)},
            "late": {("answer", ask), ("late", True), ("late", False)},
        }[plan[ask]]
        assert (kind, content) in expected
        if kind != "late":
            assert answered[ask] == (0 if kind == "ConnectionError" else 1)
        elif content is False:
            assert answered[ask] == 0
    assert combiner._queues == {}


def test_sixteen_threads_share_their_requests() -> None:
    groups: list[int] = []

    def serve(key: str, asks: list[int]) -> list[int]:
        groups.append(len(asks))
        # Longer than a busy machine takes to wake those who were answered.
        time.sleep(0.01)
        return asks

    combiner = Combiner(serve)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: combiner("key", n), range(800)))

    assert answers == list(range(800))
    assert len(groups) < 200
