"""Intercepts what the scheduler controls: requests and time.

All requests to DynamoDB, those of botocore included, pass one method of urllib3. That method and
the functions of Python's `time` are wrapped. Of our own code only one thing is replaced: how a
thread sleeps until it is its turn in a combiner. Only the threads of operations, and the one that
steps them, see the scenario's clock.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from urllib3 import HTTPResponse
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import ProtocolError

from dynamo.client.retries import is_read
from sequences import combining
from tests.faults.kinds import Answer
from tests.interleavings.operations import Conflicted, Lost, Step, running, wait_for


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

    def urlopen(self, real: Callable[..., Any], pool: Any, *args: Any, **named: Any) -> Any:
        """`HTTPConnectionPool.urlopen`, when the scheduler lets it."""
        operation = running()
        if operation is None:
            return real(pool, *args, **named)
        call = _named(args, named)
        if self.forgetful:
            call["body"] = _with_new_token(call["body"])
        deliver = partial(real, pool, **call)
        label = _label(call)
        try:
            operation.stop_before(Step(label, deliver, writes=not is_read(label.split()[0])))
        except Lost:
            raise ProtocolError("The answer was lost.") from None
        except Conflicted:
            return _cancelled()
        answer = deliver()
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

    real_sleep, real_urlopen = time.sleep, HTTPConnectionPool.urlopen

    def sleep(seconds: float) -> None:
        (interception.sleep if is_ours() else real_sleep)(seconds)

    def urlopen(pool: Any, *args: Any, **named: Any) -> Any:
        return interception.urlopen(real_urlopen, pool, *args, **named)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("time", "monotonic", "clock_gettime"):
            patch.setattr(time, name, on_our_clock(getattr(time, name)))
        patch.setattr(time, "time_ns", lambda: int(time.time() * 10**9))
        patch.setattr(time, "sleep", sleep)
        patch.setattr(HTTPConnectionPool, "urlopen", urlopen)
        patch.setattr(combining.Caller, "sleep", _sleep)
        yield


def _sleep(caller: Any) -> bool:
    """`Caller.sleep` in the thread of an operation; its deadline does not pass."""
    wait_for(lambda: not caller._sleep.locked(), "its turn")
    return bool(caller._sleep.acquire(blocking=False))


def _named(args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(("method", "url", "body", "headers"), args, strict=False)) | named


def _cancelled() -> HTTPResponse:
    """AWS's answer to a transaction that conflicts with another one on its first item."""
    answer = Answer(400, "TransactionCanceledException", reasons=["TransactionConflict"])
    return HTTPResponse(answer.body(), status=answer.status)


def _label(call: dict[str, Any]) -> str:
    """The operation and the tables of a request, which are the same in each replay."""
    target = call["headers"]["X-Amz-Target"]
    text = target.decode() if isinstance(target, bytes) else target
    body = json.loads(call["body"])
    actions = [
        f"{kind} {action['TableName']}"
        for each in body.get("TransactItems", ())
        for kind, action in each.items()
    ]
    return " ".join([text.rpartition(".")[2], *(actions or [body.get("TableName", "")])])


def _with_new_token(body: Any) -> bytes:
    request = json.loads(body)
    if "ClientRequestToken" in request:
        request["ClientRequestToken"] = str(uuid.uuid4())
    return json.dumps(request).encode()
