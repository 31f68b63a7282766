"""Intercepts what the scheduler controls: requests and time.

All requests for items pass one method of the client. It and the functions of Python's `time` are
wrapped. Of our own code only one other thing is replaced: how a thread sleeps until it is its turn
in a combiner. Only the threads of operations, and the one that steps them, see the scenario's
clock.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from dynamo.client.lean import HttpAnswer, LeanClient
from dynamo.client.retries import is_read
from sequences import combining
from tests.faults.kinds import Answer
from tests.interleavings.operations import Conflicted, Lost, Step, running, wait_for

#: AWS's answer to a transaction that conflicts with another one on its first item.
_CONFLICTED = Answer(400, "TransactionCanceledException", reasons=["TransactionConflict"])


class Clock:
    """The clock of a scenario: only pauses and `pass_seconds` move it."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def reset(self) -> None:
        """Start a schedule."""
        self.elapsed = 0.0

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass at once, as a step of the operation that calls it."""
        operation = running()
        if operation is not None:
            operation.stop_before(Step(f"{seconds:g} s pass"))
        self.elapsed += seconds


class Interception:
    """What the wrapped functions do.

    `fine`: a pause is a step, and so is the arrival of each answer. Else a pause only moves the
    clock, and an answer arrives at once: operations that do not look at the clock would run the
    same schedules many times. `forgetful`: the engine has forgotten all request tokens, as after
    ten minutes or a restart.
    """

    def __init__(self, clock: Clock, *, fine: bool, forgetful: bool) -> None:
        self.clock = clock
        self.fine = fine
        self.forgetful = forgetful

    def exchange(self, deliver: Callable[[bytes], HttpAnswer], body: bytes, headers: Any) -> Any:
        """The answer of `deliver` to a request, when the scheduler lets it."""
        operation = running()
        if operation is None:
            return deliver(body)
        if self.forgetful:
            body = _with_new_token(body)
            headers["Content-Length"] = str(len(body))
        label = _label(body, headers)
        step = Step(label, partial(deliver, body), writes=not is_read(label.split()[0]))
        try:
            operation.stop_before(step)
        except Lost:
            raise ConnectionClosedError(endpoint_url="", error="The answer was lost.") from None
        except Conflicted:
            return HttpAnswer(_CONFLICTED.status, {}, _CONFLICTED.body())
        answer = deliver(body)
        operation.has_written = step.writes and answer.status == 200
        if self.fine:
            operation.stop_before(Step("its answer"))
        return answer

    def sleep(self, seconds: float) -> None:
        """`time.sleep`, on the scenario's clock."""
        ends_at = self.clock.elapsed + seconds
        operation = running()
        if self.fine and operation is not None:
            operation.stop_before(Step("its pause"))
        self.clock.elapsed = max(self.clock.elapsed, ends_at)


@contextmanager
def installed(interception: Interception) -> Iterator[None]:
    """Intercept the requests and the time of operations and of this thread."""
    stepping = threading.get_ident()

    def is_ours() -> bool:
        return running() is not None or threading.get_ident() == stepping

    def on_our_clock(real: Callable[..., float]) -> Callable[..., float]:
        began: dict[tuple[Any, ...], float] = {}

        def read(*which: Any) -> float:
            if not is_ours():
                return real(*which)
            return began.setdefault(which, real(*which)) + interception.clock.elapsed

        return read

    real_sleep, real_exchange = time.sleep, LeanClient._exchange

    def sleep(seconds: float) -> None:
        (interception.sleep if is_ours() else real_sleep)(seconds)

    def exchange(client: LeanClient, body: bytes, headers: Any) -> HttpAnswer:
        return interception.exchange(partial(real_exchange, client, headers=headers), body, headers)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("time", "monotonic", "clock_gettime"):
            patch.setattr(time, name, on_our_clock(getattr(time, name)))
        patch.setattr(time, "time_ns", lambda: int(time.time() * 10**9))
        patch.setattr(time, "sleep", sleep)
        patch.setattr(LeanClient, "_exchange", exchange)
        patch.setattr(combining.Caller, "sleep", _sleep)
        yield


def _sleep(caller: Any) -> bool:
    """`Caller.sleep` in the thread of an operation; its deadline does not pass."""
    wait_for(lambda: not caller._sleep.locked(), "its turn")
    return bool(caller._sleep.acquire(blocking=False))


def _label(body: bytes, headers: Any) -> str:
    """The operation and the tables of a request, which are the same in each replay."""
    request = json.loads(body)
    actions = [
        f"{kind} {action['TableName']}"
        for transactitem in request.get("TransactItems", ())
        for kind, action in transactitem.items()
    ]
    operation = headers["x-amz-target"].rpartition(".")[2]
    return " ".join([operation, *(actions or [request.get("TableName", "")])])


def _with_new_token(body: bytes) -> bytes:
    request = json.loads(body)
    if "ClientRequestToken" in request:
        request["ClientRequestToken"] = str(uuid.uuid4())
    return json.dumps(request).encode()
