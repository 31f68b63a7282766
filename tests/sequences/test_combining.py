"""Callers that wait share a request, and each gets its own answer or error."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from dynamo import Unavailable
from dynamo.runtime import deadline
from dynamo.runtime.deadline import operation_ends_at, within
from sequences.combining import OVERDUE_SECONDS, Caller, Combiner
from tests.clocks import LeapingClock, use_clock
from tests.forked import in_a_child
from tests.waiting import wait_until

SECONDS = 120  # until a test that hangs fails
KEY = ""


def here(callers: list[Caller[Any, Any]]) -> list[Caller[Any, Any]]:
    return [caller for caller in callers if caller.mark_sent()]


class Scene:
    """A combiner, and callers of KEY, which ask with one letter and get key and letter.

    Its first requests (`holds`) wait for `go_on`.
    """

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.combiner: Combiner[str, str, str] = Combiner(self._send, self._prepare)
        #: What was asked for in each request, and the thread that sent it.
        self.groups: list[str] = []
        self.threads: list[int] = []
        self.holds = 1
        #: How many share a request.
        self.size = 100
        #: The error of a request by its leader, and of the preparation of each request.
        self.errors: dict[str, BaseException] = {}
        self.prepares: list[BaseException | None] = []
        #: Those to leave undecided once.
        self.again: set[str] = set()
        #: Done before each request that has gathered its callers.
        self.before: Callable[[], object] = lambda: None
        self._pool = pool
        self._arrived = threading.Semaphore(0)
        self._open = threading.Semaphore(0)

    def _prepare(self, _key: str) -> None:
        if self.prepares and (error := self.prepares.pop(0)):
            raise error

    def _send(self, key: str, callers: list[Caller[str, str]]) -> None:
        self.before()
        callers = here(callers[: self.size])
        group = "".join(caller.ask for caller in callers)
        self.groups.append(group)
        self.threads.append(threading.get_ident())
        if self.holds:
            self.holds -= 1
            self._arrived.release()
            assert self._open.acquire(timeout=SECONDS)
        if group[0] in self.errors:
            raise self.errors.pop(group[0])
        for caller in callers:
            if caller.ask in self.again:
                self.again.remove(caller.ask)
            else:
                caller.decide(key + caller.ask)

    def call(self, ask: str, seconds: float | None = SECONDS) -> str:
        with nullcontext() if seconds is None else within(seconds):
            return self.combiner(KEY, ask)

    def ask(self, ask: str, seconds: float | None = None) -> Future[str]:
        """Start a caller, which leads or waits then."""
        leads, before = KEY not in self.combiner._queues, self.waiting
        future = self._pool.submit(self.call, ask, seconds)
        if leads:
            assert self._arrived.acquire(timeout=SECONDS)
        else:
            wait_until(lambda: self.waiting > before)
        return future

    def crowd(self, asks: str) -> list[Future[str]]:
        """Start callers: the first one sends, the others wait in this order."""
        return [self.ask(ask) for ask in asks]

    @property
    def waiting(self) -> int:
        queue = self.combiner._queues.get(KEY)
        return len(queue.waiting) if queue else 0

    def go_on(self, *, to_next: bool = False) -> None:
        """Let the request that waits go on; `to_next`: until the next one waits."""
        self._open.release()
        assert not to_next or self._arrived.acquire(timeout=SECONDS)


def answers(futures: list[Future[str]]) -> str:
    return "".join(future.result(SECONDS) for future in futures)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with ThreadPoolExecutor(32) as pool:
        scene = Scene(pool)
        yield scene
    assert scene.combiner._queues == {}


def test_a_caller_alone_sends_at_once_in_its_own_thread(scene: Scene) -> None:
    scene.holds = 0

    assert [scene.call(ask) for ask in "abc"] == scene.groups == ["a", "b", "c"]
    assert set(scene.threads) == {threading.get_ident()}


def test_keys_do_not_wait_for_each_other(scene: Scene) -> None:
    waiting = scene.crowd("a")

    assert scene.combiner("other ", "b") == "other b"

    scene.go_on()
    assert answers(waiting) == "a"


#: Callers that wait for each other, how they are sent for, and which share a request.
ORDERS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "all that wait": ("abcdef", {}, ["a", "bcdef"]),
    "as many as fit": ("abcdef", {"size": 2}, ["a", "bc", "de", "f"]),
    # A leader sends until it is decided itself.
    "undecided ones again": ("abc", {"again": {"a", "c"}}, ["a", "abc", "c"]),
}


@pytest.mark.parametrize(("callers", "how", "groups"), ORDERS.values(), ids=ORDERS)
def test_callers_that_wait_share_requests_in_their_order(
    scene: Scene, callers: str, how: dict[str, Any], groups: list[str]
) -> None:
    for name, value in how.items():
        setattr(scene, name, value)
    futures = scene.crowd(callers)

    scene.go_on()

    assert answers(futures) == callers
    assert scene.groups == groups


@pytest.mark.parametrize("prepares", [False, True], ids=["while it sends", "while it prepares"])
@pytest.mark.parametrize("error", [ConnectionError(), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_an_error_of_a_leader_is_its_own(
    scene: Scene, error: BaseException, prepares: bool
) -> None:
    if prepares:
        scene.prepares = [None, error]
    else:
        scene.errors = {"b": error}
    first, leader, *followers = scene.crowd("abcd")

    scene.go_on()

    assert leader.exception(SECONDS) is error
    assert answers([first, *followers]) == "acd"
    assert scene.groups == (["a", "cd"] if prepares else ["a", "bcd", "cd"])


def test_followers_of_a_failed_leader_go_before_later_callers(scene: Scene) -> None:
    scene.holds, scene.size = 2, 3
    scene.errors = {"b": ConnectionError()}
    scene.crowd("abc")
    scene.go_on(to_next=True)
    later = scene.crowd("d")

    scene.go_on()

    assert answers(later) == "d"
    assert scene.groups == ["a", "bc", "cd"]


def test_the_first_outcome_of_a_caller_stays() -> None:
    decided = Caller[str, str]("a", 0.0)
    left = Caller[str, str]("b", 0.0)
    left.mark_left()

    for outcome in ("first", ConnectionError(), "last"):
        decided.decide(outcome)
        left.decide(outcome)

    assert (decided.answer(), left.mark_sent()) == ("first", False)


def test_an_error_after_the_leader_was_decided_is_not_its_own() -> None:
    def send(_key: str, callers: list[Caller[str, str]]) -> None:
        for caller in here(callers):
            caller.decide(caller.ask)
        raise ConnectionError

    assert Combiner(send)("key", "a") == "a"


def test_a_decided_caller_returns_before_its_leader_is_decided(scene: Scene) -> None:
    scene.holds = 3
    scene.again = {"b"}
    _first, leader, decided = scene.crowd("abc")
    for _turn in "ab":
        scene.go_on(to_next=True)

    assert answers([decided]) == "c"
    assert not leader.done()
    scene.go_on()
    assert answers([leader]) == "b"


@pytest.mark.parametrize("is_sent", [True, False], ids=["under way", "still waiting"])
def test_a_caller_that_leaves_is_told_whether_it_was_sent(scene: Scene, is_sent: bool) -> None:
    scene.holds = 1 + is_sent
    futures = scene.crowd("ab")
    leaving = scene.ask("c", seconds=0.3)
    if is_sent:
        scene.go_on(to_next=True)

    error = leaving.exception(SECONDS)

    assert isinstance(error, Unavailable)
    assert error.maybe_written == is_sent
    scene.go_on()
    assert answers(futures) == "ab"
    assert scene.groups == ["a", "bc" if is_sent else "b"]


def test_a_caller_that_left_is_not_sent_for_again(scene: Scene) -> None:
    scene.holds = 2
    scene.errors = {"b": ConnectionError()}
    scene.crowd("ab")
    leaving = scene.ask("c", seconds=0.3)
    staying = scene.crowd("d")
    scene.go_on(to_next=True)
    assert isinstance(leaving.exception(SECONDS), Unavailable)

    scene.go_on()

    assert answers(staying) == "d"
    assert scene.groups == ["a", "bcd", "d"]


def test_a_caller_that_left_before_the_request_is_not_sent_for(scene: Scene) -> None:
    futures = scene.crowd("ab")
    leaving = scene.ask("c", seconds=0.5)
    gathered: list[int] = []

    def wait_until_it_has_left() -> None:
        gathered.append(scene.waiting)
        wait_until(leaving.done)

    scene.before = wait_until_it_has_left
    scene.go_on()

    error = leaving.exception(SECONDS)
    assert isinstance(error, Unavailable)
    assert not error.maybe_written
    assert answers(futures) == "ab"
    assert (scene.groups, gathered) == (["a", "b"], [0])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LeapingClock:
    """The clock of deadlines, which are so long that a stall does not use them up."""
    leaping = LeapingClock()
    use_clock(leaping, monkeypatch)
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 1000.0)
    return leaping


def test_a_leader_has_only_the_rest_of_its_time(scene: Scene, clock: LeapingClock) -> None:
    left: list[float] = []
    scene.before = lambda: left.append(operation_ends_at() - clock.monotonic())
    futures = scene.crowd("ab")
    clock.leap(500)
    scene.go_on()

    assert answers(futures) == "ab"
    assert 0 < left[1] <= 500 < left[0]


@pytest.fixture
def _ctrl_c_raises() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c_raises")
def test_ctrl_c_ends_a_wait_and_does_not_affect_the_others(scene: Scene) -> None:
    futures = scene.crowd("ab")

    def interrupt() -> None:
        wait_until(lambda: scene.waiting == 2)
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        scene.call("m")

    interrupting.join()
    assert scene.waiting == 1
    scene.go_on()
    assert answers(futures) == "ab"


def test_a_killed_leader_is_replaced_when_it_is_overdue(scene: Scene, clock: LeapingClock) -> None:
    hanging = scene.crowd("ab")
    clock.leap(deadline.OPERATION_SECONDS + OVERDUE_SECONDS + 1)

    assert scene.call("c") == "c"
    assert scene.groups == ["a", "cb"]

    scene.go_on()
    assert answers(hanging) == "ab"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_starts_with_an_empty_queue(scene: Scene) -> None:
    futures = scene.crowd("abc")

    def child() -> None:
        assert scene.call("d") == "d"

    assert in_a_child(child) == 0
    scene.go_on()
    assert answers(futures) == "abc"


def test_a_child_forked_by_a_leader_ends_normally() -> None:
    def send(_key: str, callers: list[Caller[str, int]]) -> None:
        for caller in here(callers):
            caller.decide(os.fork())

    combiner = Combiner(send)
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
def test_every_caller_gets_its_own_outcome_once(plan: list[str], size: int, threads: int) -> None:
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

    kinds = {
        "serve": {"answer"},
        "again": {"answer"},
        "error": {"ValueError"},
        # If another leader serves it, it does not fail.
        "fail": {"ConnectionError", "answer"},
        "late": {"answer", "late"},
    }
    for ask, (kind, content) in enumerate(outcomes):
        assert kind in kinds[plan[ask]]
        assert kind == "late" or content == ask
        if kind != "late":
            assert answered[ask] == (0 if kind == "ConnectionError" else 1)
        elif content is False:
            assert answered[ask] == 0
    assert combiner._queues == {}
