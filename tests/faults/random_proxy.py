"""A proxy that injects random faults before an engine that may be killed meanwhile.

DynamoDB remembers the token of a transaction for ten minutes; a local engine that is killed forgets
all tokens. So requests that reached the proxy before the engine was killed, held and duplicated
ones included, never reach the next engine: AWS would not carry them out again either.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.faults.handler import RawReply, Seen
from tests.faults.kinds import Fault
from tests.faults.proxy import FaultProxy
from tests.faults.random_faults import RandomFaults

#: A held or repeated request reaches the engine at most so much later than the client sent it, on
#: a busy machine too.
LATEST_SECONDS = 10.0


class RandomFaultProxy(FaultProxy):
    """Draws the faults of requests, and does not record them."""

    def __init__(self, engine_url: str, faults: RandomFaults) -> None:
        super().__init__(engine_url)
        self.faults = faults
        self._gate = threading.Condition()
        self._under_way = 0
        self._era = 0
        #: The longest that a request took from its arrival to the engine's reply.
        self.latest_seconds = 0.0

    def drop_what_arrived(self) -> None:
        """Drop the requests that are here already, as the engine is about to be killed."""
        with self._gate:
            self._era += 1

    def wait_until_none_is_under_way(self) -> None:
        """Wait until the requests that the killed engine had have failed."""
        with self._gate:
            self._gate.wait_for(lambda: not self._under_way, 10)

    def _fault_for(self, seen: Seen) -> Fault | None:
        return self.faults.draw(seen.operation, seen.body)

    def _reply_under(
        self, fault: Fault | None, request: dict[str, Any], forward: Callable[[], RawReply]
    ) -> RawReply | None:
        era, arrived_at = self._era, time.monotonic()

        def forward_in_time() -> RawReply:
            with self._gate:
                if era != self._era or time.monotonic() - arrived_at > LATEST_SECONDS / 2:
                    raise ConnectionAbortedError
                self._under_way += 1
            try:
                return forward()
            finally:
                with self._gate:
                    self._under_way -= 1
                    took = time.monotonic() - arrived_at
                    self.latest_seconds = max(self.latest_seconds, took)
                    self._gate.notify_all()

        return super()._reply_under(fault, request, forward_in_time)
