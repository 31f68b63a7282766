"""Callers that wait share a request, and each gets its own answer or error."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from dynamo._internal.client import deadline
from dynamo._internal.client.deadline import operation_ends_at, within
from dynamo.exceptions import Unavailable
from sequences._internal.combining import OVERDUE_SECONDS, Caller, Combiner
from tests.clocks import LeapingClock, use_clock
from tests.forked import in_a_child
from tests.waiting import wait_until

SECONDS = 120  # until a test that hangs fails


Callers = list[Caller[Any, Any]]


def here(callers: Callers) -> Callers:
    return [caller for caller in callers if caller.is_here()]


def serving(answer: Callable[[Any], Any]) -> Callable[[Any, Callers], None]:
    """A `serve` that gives each caller what `answer` returns for its ask."""

    def serve(_key: Any, callers: Callers) -> None:
        for caller in here(callers):
            caller.decide(answer(caller.ask))

    return serve


class Served:
    """A `serve` that returns what was asked, and waits or fails as a test needs."""

    def __init__(self) -> None:
        self.groups: list[list[Any]] = []
        self.threads: list[int] = []
        self.arrived = threading.Semaphore(0)
        self._open = threading.Semaphore(0)
        self.holds = 1
        self.errors: dict[Any, BaseException] = {}
        #: Asks to leave unserved once.
        self.again: set[Any] = set()
        #: How many share a request.
        self.size = 100

    def __call__(self, key: str, callers: Callers) -> None:
        callers = here(callers[: self.size])
        asks = [caller.ask for caller in callers]
        self.groups.append(asks)
        self.threads.append(threading.get_ident())
        if self.holds:
            self.holds -= 1
            self.arrived.release()
            assert self._open.acquire(timeout=SECONDS)
        if asks[0] in self.errors:
            raise self.errors.pop(asks[0])
        for caller in callers:
            if caller.ask in self.again:
                self.again.remove(caller.ask)
            else:
                caller.decide(f"{key}:{caller.ask}")

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


def crowd(
    pool: ThreadPoolExecutor, combiner: Combiner[Any, Any, Any], served: Served, *asks: Any
) -> list[Future[Any]]:
    """Start callers: the first of `asks` is being served, the others wait in this order."""
    futures = [pool.submit(combiner, "key", asks[0])]
    served.wait_for_leader()
    for count, ask in enumerate(asks[1:], 1):
        futures.append(pool.submit(combiner, "key", ask))
        wait_until(lambda count=count: waiting(combiner) == count)  # type: ignore[misc]
    return futures


def test_a_caller_alone_is_served_at_once_in_its_own_thread(served: Served) -> None:
    served.holds = 0
    combiner = Combiner(served)

    assert [combiner("key", ask) for ask in "abc"] == ["key:a", "key:b", "key:c"]
    assert served.groups == [["a"], ["b"], ["c"]]
    assert set(served.threads) == {threading.get_ident()}


def test_keys_do_not_wait_for_each_other(served: Served, pool: ThreadPoolExecutor) -> None:
    combiner = Combiner(served)
    (first,) = crowd(pool, combiner, served, "a")

    assert combiner("other", "b") == "other:b"

    served.go_on()
    assert first.result(SECONDS) == "key:a"


@pytest.mark.parametrize(
    ("size", "groups"), [(9, ["a", "bcdef"]), (2, ["a", "bc", "de", "f"])], ids=["all", "two"]
)
def test_callers_that_wait_are_served_in_order_together_as_many_as_fit(
    served: Served, pool: ThreadPoolExecutor, size: int, groups: list[str]
) -> None:
    served.size = size
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abcdef")

    served.go_on()

    assert [future.result(SECONDS) for future in futures] == [f"key:{ask}" for ask in "abcdef"]
    assert served.groups == [list(group) for group in groups]
    assert len(set(served.threads)) > 1


@pytest.mark.parametrize("prepares", [False, True], ids=["while it sends", "while it prepares"])
@pytest.mark.parametrize("error", [ConnectionError(), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_an_error_of_a_leader_is_its_own_and_its_followers_are_served_again_in_order(
    served: Served, pool: ThreadPoolExecutor, error: BaseException, prepares: bool
) -> None:
    turns = iter([None, error if prepares else None])

    def prepare(_key: str) -> None:
        if failure := next(turns, None):
            raise failure

    served.errors = {} if prepares else {"b": error}
    combiner = Combiner(served, prepare)
    futures = crowd(pool, combiner, served, *"abcd")

    served.go_on()

    assert futures[1].exception(SECONDS) is error
    assert [futures[n].result(SECONDS) for n in (0, 2, 3)] == ["key:a", "key:c", "key:d"]
    assert served.groups == [["a"], *([] if prepares else [["b", "c", "d"]]), ["c", "d"]]


def test_followers_of_a_failed_leader_go_before_later_callers(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    served.holds = 2
    served.errors = {"b": ConnectionError()}
    served.size = 3
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abc")
    served.go_on()
    served.wait_for_leader()
    futures += [pool.submit(combiner, "key", "d")]
    wait_until(lambda: waiting(combiner) == 1)

    served.go_on()

    assert futures[3].result(SECONDS) == "key:d"
    assert served.groups == [["a"], ["b", "c"], ["c", "d"]]


def test_an_error_after_the_leader_was_served_is_not_its_own(pool: ThreadPoolExecutor) -> None:
    def serve(_key: str, callers: Callers) -> None:
        for caller in here(callers):
            caller.decide(caller.ask)
        raise ConnectionError

    combiner: Combiner[str, str, str] = Combiner(serve)

    assert combiner("key", "a") == "a"
    assert combiner._queues == {}


def test_an_unserved_caller_shares_the_next_request_with_callers_that_arrived_meanwhile(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    served.again = {"a", "c"}
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abc")

    served.go_on()

    assert [future.result(SECONDS) for future in futures] == ["key:a", "key:b", "key:c"]
    # Both were left unserved once. A leader sends until it is served itself.
    assert served.groups == [["a"], ["a", "b", "c"], ["c"]]
    assert served.threads[0] == served.threads[1]
    assert combiner._queues == {}


def test_a_served_caller_returns_before_its_leader_is_served(
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


def impatient(combiner: Combiner[Any, Any, Any], ask: str, seconds: float) -> Any:
    with within(seconds):
        return combiner("key", ask)


@pytest.mark.parametrize("is_sent", [True, False], ids=["under way", "still waiting"])
def test_a_caller_that_leaves_at_its_deadline_is_told_whether_its_request_may_be_written(
    served: Served, pool: ThreadPoolExecutor, is_sent: bool
) -> None:
    served.holds = 1 + is_sent
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, "a", "b")
    leaving = pool.submit(impatient, combiner, "c", 0.3)
    wait_until(lambda: waiting(combiner) == 2)
    if is_sent:
        served.go_on()
        served.wait_for_leader()

    error = leaving.exception(SECONDS)

    assert isinstance(error, Unavailable)
    assert error.maybe_written == is_sent
    served.go_on()
    assert [future.result(SECONDS) for future in futures] == ["key:a", "key:b"]
    assert served.groups == [["a"], ["b", "c"] if is_sent else ["b"]]
    assert combiner._queues == {}


def test_one_that_left_is_not_served_again(served: Served, pool: ThreadPoolExecutor) -> None:
    served.holds = 2
    served.errors = {"b": ConnectionError()}
    combiner = Combiner(served)
    crowd(pool, combiner, served, "a", "b")
    leaving = pool.submit(impatient, combiner, "c", 0.3)
    wait_until(lambda: waiting(combiner) == 2)
    staying = pool.submit(combiner, "key", "d")
    wait_until(lambda: waiting(combiner) == 3)
    served.go_on()
    served.wait_for_leader()
    assert isinstance(leaving.exception(SECONDS), Unavailable)

    served.go_on()

    assert staying.result(SECONDS) == "key:d"
    assert served.groups == [["a"], ["b", "c", "d"], ["d"]]


def test_a_caller_that_gave_up_before_its_request_was_sent_is_not_sent(
    pool: ThreadPoolExecutor,
) -> None:
    sent: list[list[str]] = []
    gathered = threading.Event()

    def serve(_key: str, callers: Callers) -> None:
        asks = [caller.ask for caller in callers]
        if asks == ["a"]:
            wait_until(lambda: waiting(combiner) == 2)
        elif "c" in asks:
            gathered.set()
            wait_until(lambda: bool(leaving) and leaving[0].done())
        callers = here(callers)
        sent.append([caller.ask for caller in callers])
        for caller in callers:
            caller.decide(caller.ask)

    combiner: Combiner[str, str, str] = Combiner(serve)
    leaving: list[Future[Any]] = []
    first = pool.submit(combiner, "key", "a")
    wait_until(lambda: "key" in combiner._queues)
    second = pool.submit(combiner, "key", "b")
    wait_until(lambda: waiting(combiner) == 1)
    leaving.append(pool.submit(impatient, combiner, "c", 0.3))

    assert gathered.wait(SECONDS)
    error = leaving[0].exception(SECONDS)

    assert isinstance(error, Unavailable)
    assert not error.maybe_written
    assert (first.result(SECONDS), second.result(SECONDS)) == ("a", "b")
    assert sent == [["a"], ["b"]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LeapingClock:
    """The clock of deadlines, which are so long that a stall does not use them up."""
    leaping = LeapingClock()
    use_clock(leaping, monkeypatch)
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 1000.0)
    return leaping


def test_a_leader_that_waited_before_has_only_the_rest_of_its_time(
    pool: ThreadPoolExecutor, clock: LeapingClock
) -> None:
    left: dict[str, float] = {}
    held = threading.Event()

    def answer(ask: str) -> str:
        left[ask] = operation_ends_at() - clock.monotonic()
        if ask == "a":
            assert held.wait(SECONDS)
        return ask

    combiner: Combiner[str, str, str] = Combiner(serving(answer))
    first = pool.submit(combiner, "key", "a")
    wait_until(lambda: "a" in left)
    second = pool.submit(combiner, "key", "b")
    wait_until(lambda: waiting(combiner) == 1)
    clock.leap(500)
    held.set()

    assert (first.result(SECONDS), second.result(SECONDS)) == ("a", "b")
    assert 0 < left["b"] <= 500 < left["a"]


@pytest.mark.usefixtures("_ctrl_c_raises")
def test_ctrl_c_ends_a_wait_and_does_not_affect_the_others(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, "a", "b")

    def interrupt() -> None:
        wait_until(lambda: waiting(combiner) == 2)
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


def test_a_leader_that_was_killed_is_replaced_once_it_is_overdue(
    served: Served, pool: ThreadPoolExecutor, clock: LeapingClock
) -> None:
    combiner = Combiner(served)
    hanging = crowd(pool, combiner, served, "a", "b")
    clock.leap(deadline.OPERATION_SECONDS + OVERDUE_SECONDS + 1)

    assert combiner("key", "c") == "key:c"
    assert served.groups[:2] == [["a"], ["c", "b"]]

    served.go_on()
    assert [each.result(SECONDS) for each in hanging] == ["key:a", "key:b"]
    assert combiner._queues == {}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_starts_with_an_empty_queue(
    served: Served, pool: ThreadPoolExecutor
) -> None:
    combiner = Combiner(served)
    futures = crowd(pool, combiner, served, *"abc")

    def child() -> None:
        assert impatient(combiner, "child", SECONDS) == "key:child"

    assert in_a_child(child) == 0
    served.go_on()
    assert [future.result(SECONDS) for future in futures] == ["key:a", "key:b", "key:c"]


def test_a_child_forked_by_a_leader_ends_normally() -> None:
    combiner: Combiner[str, str, int] = Combiner(serving(lambda _ask: os.fork()))
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
def test_every_caller_gets_its_own_outcome_and_each_ask_is_answered_once(
    plan: list[str], size: int, threads: int
) -> None:
    sending = threading.Lock()
    answered: Counter[int] = Counter()
    put_off: set[int] = set()

    def decide(caller: Caller[int, int]) -> None:
        ask = caller.ask
        if plan[ask] == "again" and ask not in put_off:
            put_off.add(ask)
            return
        answered[ask] += 1
        caller.decide(ValueError(ask) if plan[ask] == "error" else ask)

    def serve(_key: str, callers: list[Caller[int, int]]) -> None:
        assert sending.acquire(blocking=False), "two lead at once"
        try:
            callers = here(callers[:size])
            time.sleep(0.0005)
            if plan[callers[0].ask] == "fail":
                raise ConnectionError(callers[0].ask)
            for caller in callers:
                decide(caller)
        finally:
            sending.release()

    combiner = Combiner(serve)

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
            # If another leader serves it, it does not fail.
            "fail": {("ConnectionError", ask), ("answer", ask)},
            "late": {("answer", ask), ("late", True), ("late", False)},
        }[plan[ask]]
        assert (kind, content) in expected
        if kind != "late":
            assert answered[ask] == (0 if kind == "ConnectionError" else 1)
        elif content is False:
            assert answered[ask] == 0
    assert combiner._queues == {}
