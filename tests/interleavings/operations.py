"""One operation that runs in a thread of its own, and stops before each of its steps.

A step is what others can notice or what lets time pass: a request, its answer, a pause. The
scheduler (`tests.interleavings.scheduler`) lets one operation at a time take its next step. Between
two steps an operation runs undisturbed: others cannot see what it does there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Died(BaseException):
    """The operation's process ended here: nothing of ours catches it, no request follows."""


class Lost(Exception):
    """The request has left and no answer will come.."""


class Met(Exception):
    """The transaction has met another one: it is cancelled as AWS does."""


#: How long an operation may take to its next step; so long only on a machine that is dead.
LONGEST_SECONDS = 300

#: What has become of an operation whose process died: nobody was told anything.
DEAD = "dead"


def _any_time() -> bool:
    return True


@dataclass(frozen=True)
class Step:
    """What an operation is about to do; `label` is the same in each replay of a schedule.

    `deliver`, of a request, is what sends it, and `writes` whether that may change what is stored;
    `is_ready` says whether the step can be taken.
    """

    label: str
    deliver: Callable[[], Any] | None = None
    writes: bool = False
    is_ready: Callable[[], bool] = _any_time


class Operation:
    """One operation. `outcome` is what it returned, the error that it raised, or DEAD."""

    def __init__(self, number: int, act: Callable[[], object]) -> None:
        self.number = number
        #: The step that it waits to take; None while it runs, and when it is over.
        self.next: Step | None = None
        self.outcome: Any = None
        self._act = act
        self._order: type[BaseException] | None = None
        self._is_dead = False
        self._may_go = _held()
        self._stopped = _held()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Run to the first step; comes back when it stands there."""
        self._thread.start()
        self._wait_until_it_stops()

    def go(self, order: type[BaseException] | None = None) -> None:
        """Take the step, or meet `order` instead; comes back when it stands at its next step."""
        self._order = order
        self.next = None
        self._may_go.release()
        self._wait_until_it_stops()

    def end(self) -> None:
        """Let it end without another step, whatever it was about to do."""
        while self.next is not None:
            self.go(Died)
        self._thread.join(timeout=10)

    def stop_before(self, step: Step) -> None:
        """Wait until it is this operation's turn to take `step`. Only in its own thread.

        Raises:
            Died: its process ends here, or ended before.
            Lost: the answer to the request is lost.
            Met: the request is cancelled, as another transaction was under way.
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
            raise RuntimeError("It waits for something that the scheduler cannot see.")

    def _run(self) -> None:
        _of_thread.operation = self
        try:
            self.outcome = self._act()
        except Died:
            self.outcome = DEAD
        except Exception as error:
            # Checked by the scenario's rules, like everything that an operation answers.
            self.outcome = error
        finally:
            self._stopped.release()


def _held() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


_of_thread = threading.local()


def running() -> Operation | None:
    """The operation whose thread this is; None in a thread that no scheduler steps."""
    operation: Operation | None = getattr(_of_thread, "operation", None)
    return operation


def pass_by(label: str) -> None:
    """A step that does nothing, but that others may come before."""
    operation = running()
    assert operation is not None
    operation.stop_before(Step(label))


def wait_for(condition: Callable[[], bool], label: str) -> None:
    """A step that can be taken only when `condition` holds; whoever makes it hold takes steps."""
    operation = running()
    assert operation is not None
    operation.stop_before(Step(label, is_ready=condition))
