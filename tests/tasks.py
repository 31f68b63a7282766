"""Tasks of an event loop that are cancelled during a request."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.requests import told


async def cancel_during(
    proxy: FaultProxy, operation: str, work: Coroutine[Any, Any, object]
) -> None:
    """Cancel the task of `work` when its next `operation` is sent, which is answered after that.

    The thread of the call has its reply when this returns: otherwise the next test would see it.
    """
    cancelled, answered = threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(work)

    def meanwhile() -> None:
        loop.call_soon_threadsafe(task.cancel)
        assert cancelled.wait(120)

    def note(**signal: Any) -> None:
        if signal["operation"] == operation:
            answered.set()

    proxy.plan(operation, Meanwhile(meanwhile))
    with told(note):
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()
        assert await asyncio.to_thread(answered.wait, 120)
