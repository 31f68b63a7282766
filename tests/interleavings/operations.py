"""One operation that runs in a thread of its own and stops before each of its steps.

A step is what others can notice or what takes time: a request, its answer, a pause. The
scheduler (`tests.interleavings.scheduler`) lets one operation at a time take its next step. Between
two steps an operation runs undisturbed: others cannot see what it does there.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Died(BaseException):
    """The operation's process ends here: no code of ours catches it, and no request follows."""


class Lost(Exception):
    """The request was sent, and its answer is lost."""


class Conflicted(Exception):
    """The transaction is canceled, as it conflicts with another one."""


#: How long an operation may take to its next step, even on a machine that stalls.
LONGEST_SECONDS = 300

#: The outcome of an operation whose process died.
DEAD = "dead"


def _any_time() -> bool:
    return True


@dataclass(frozen=True)
class Step:
    """What an operation is about to do; `label` is the same in each replay of a schedule.

    `deliver` sends the request, if the step is one, and `writes` says whether it may change what is
    stored. The step can be taken when `is_ready` says so.
    """

    label: str
    deliver: Callable[[], Any] | None = None
    writes: bool = False
    is_ready: Callable[[], bool] = _any_time


class Operation:
    """One operation. Its `outcome` is what it returned, the error that it raised, or DEAD."""

    def __init__(self, number: int, act: Callable[[], object]) -> None:
        self.number = number
        #: The step that it waits to take; None while it runs and when it has ended.
        self.next: Step | None = None
        self.outcome: Any = None
        #: Whether it has taken no step yet.
        self.is_fresh = True
        #: Whether its last step may have changed what is stored.
        self.has_written = False
        self._act = act
        self._order: type[BaseException] | None = None
        self._is_dead = False
        self._may_go = _held()
        self._stopped = _held()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Run up to the first step."""
        self._thread.start()
        self._wait_until_it_stops()

    def go(self, order: type[BaseException] | None = None) -> None:
        """Take the step, or raise `order` in its place, and run up to the next step."""
        self._order = order
        self.next = None
        self.is_fresh = self.has_written = False
        self._may_go.release()
        self._wait_until_it_stops()

    def end(self) -> None:
        """End it without another step."""
        while self.next is not None:
            self.go(Died)
        self._thread.join(timeout=10)

    def stop_before(self, step: Step) -> None:
        """Wait until the scheduler lets this operation take `step`. Only in its own thread.

        Raises:
            Died: its process ends here, or ended before.
            Lost: the answer to the request is lost.
            Conflicted: the transaction is canceled.
        """
        if self._is_dead:
            raise Died
        self.next = step
        self._stopped.release()
        self._may_go.acquire()
        if self._order is not None:
            self._is_dead = self._order is Died
            raise self._order

    def _wait_until_it_stops(self) -> None:
        if not self._stopped.acquire(timeout=LONGEST_SECONDS):
            raise RuntimeError("The operation waits for something that the scheduler cannot see.")

    def _run(self) -> None:
        _of_thread.operation = self
        try:
            self.outcome = self._act()
        except Died:
            self.outcome = DEAD
        except Exception as error:
            # An outcome like any other: the scenario checks it.
            self.outcome = error
        finally:
            self._stopped.release()


def _held() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


_of_thread = threading.local()


def running() -> Operation | None:
    """The operation whose thread this is; None in every other thread."""
    operation: Operation | None = getattr(_of_thread, "operation", None)
    return operation


def pass_by(label: str) -> None:
    """A step that does nothing: other operations may take steps before it."""
    operation = running()
    assert operation is not None
    operation.stop_before(Step(label))


def wait_for(condition: Callable[[], bool], label: str) -> None:
    """A step that can be taken when `condition` holds; other operations make it hold."""
    operation = running()
    assert operation is not None
    operation.stop_before(Step(label, is_ready=condition))
