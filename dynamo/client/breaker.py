"""Pages fail fast while DynamoDB cannot be reached: a circuit breaker for each process.

Without it, every page would repeat its request until its deadline and hold a thread of the server
for that time. Visitors would wait for an answer that cannot come.

- It opens when several requests in a row could not connect, or got no reply in time, over at least
  a second, and no request of the process was answered in the meantime. Any answer resets the count,
  also throttling and errors of the service. A reset or closed connection does not count: the
  service accepted it, and the lost reply may be that of a write.
- While it is open, requests of pages are not sent. Earlier requests wait for their replies.
- Each second, one request of a page is sent as a probe, and this page waits for it. Its answer
  closes the breaker.

Only code inside `failing_fast()` is refused. Commands, lock renewals and health checks are always
sent: they are few, they pause between attempts, and a lease must be renewed as soon as DynamoDB is
back. Their results count as well.

Source: M. Nygard, "Release It!", 2007 (Circuit Breaker).
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from botocore.exceptions import ClientError, ConnectionError, ReadTimeoutError, SSLError

#: This many failures in a row open the breaker, if they lasted for at least this time. Retries
#: bridge shorter interruptions.
OPENING_FAILURES = 5
OPENING_SECONDS = 1.0

#: The time from the opening to the first probe, and between two probes.
OPEN_SECONDS = 1.0

log = logging.getLogger(__name__)

_fails_fast: ContextVar[bool] = ContextVar("dynamo_fails_fast", default=False)


@contextmanager
def failing_fast() -> Iterator[None]:
    """Do not send the requests of the body while DynamoDB cannot be reached."""
    token = _fails_fast.set(True)
    try:
        yield
    finally:
        _fails_fast.reset(token)


def fails_fast() -> bool:
    """Whether the caller is inside `failing_fast()`."""
    return _fails_fast.get()


class Breaker:
    """The breaker of a process. Thread-safe. Call `note` after each request that was sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answered_at = 0.0
        self._failures = 0
        self._failing_since = 0.0
        self._probes_at = 0.0
        #: Whether recent attempts could not reach DynamoDB.
        self.is_open = False

    def admits(self) -> bool:
        """Whether a request that fails fast may be sent now, possibly as the probe."""
        if not self.is_open:
            return True
        with self._lock:
            now = time.monotonic()
            if now < self._probes_at:
                return not self.is_open
            self._probes_at = now + OPEN_SECONDS
            return True

    def note(self, began: float, error: BaseException | None) -> None:
        """Count one attempt that was sent at `began` (`time.monotonic()`)."""
        if error is None or isinstance(error, ClientError):
            self._answered_at = time.monotonic()
            if self._failures or self.is_open:
                self._close()
            return
        with self._lock:
            now = time.monotonic()
            # An answer to another request since `began` shows that DynamoDB is reachable.
            if self.is_open or not _is_unreachable(error) or began < self._answered_at:
                return
            if not self._failures:
                self._failing_since = began
            self._failures += 1
            lasts = now - self._failing_since >= OPENING_SECONDS
            if self._failures >= OPENING_FAILURES and lasts:
                self.is_open = True
                self._probes_at = now + OPEN_SECONDS
                log.warning("DynamoDB cannot be reached, so pages fail fast: %s", error)

    def _close(self) -> None:
        with self._lock:
            was_open = self.is_open
            self.is_open = False
            self._failures = 0
        if was_open:
            log.warning("DynamoDB can be reached again.")


def _is_unreachable(error: BaseException) -> bool:
    # botocore counts TLS errors as ConnectionError, although the connection was accepted.
    is_tls = isinstance(error, SSLError)
    return isinstance(error, (ConnectionError, ReadTimeoutError)) and not is_tls
