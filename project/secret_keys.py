"""Django's secret keys, from a SecureString parameter of AWS Systems Manager (SSM).

The parameter contains one key per line. The first one signs; signatures made with the others are
valid, too. So a key can be replaced without signing anybody out.

The keys are read at the start, in every process restored from a snapshot, and by the first page
that begins `FRESH_SECONDS` or more after that. There is no thread for it: a frozen function would
not run it, and an idle one would be charged for it.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time

from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from dynamo.extending import PerProcess, within
from project.parameters import CONNECT_SECONDS, ParameterUnavailable, read

log = logging.getLogger(__name__)

#: After how long the keys are read again.
FRESH_SECONDS = 300.0

#: How long the start tries. AWS Lambda ends a start after 10 s.
START_SECONDS = 5.0


class _Reading:
    """When this process last began to read the keys."""

    def __init__(self) -> None:
        self.at = -math.inf
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Whether the caller must read the keys now. True for one thread per period."""
        # The wall clock: others may stand still while a function is frozen. It may be set back.
        now = time.time()
        if abs(now - self.at) < FRESH_SECONDS:
            return False
        with self._lock:
            is_first = abs(now - self.at) >= FRESH_SECONDS
            self.at = now
        return is_first


_reading = PerProcess(_Reading)


def load() -> None:
    """Read the keys for a process that starts. Takes at most `START_SECONDS` and one attempt.

    Raises:
        SystemExit: they cannot be read; with one line for the operator.
    """
    ends_at = time.monotonic() + START_SECONDS
    while True:
        try:
            with within(ends_at - time.monotonic()):
                _use(_read())
            _reading().at = time.time()
            return
        except ParameterUnavailable as error:
            pause = random.uniform(0.1, 0.5)  # noqa: S311 - spreads load
            if not error.is_temporary or time.monotonic() + pause >= ends_at:
                problem = f"DJANGO_SECRET_KEY_PARAMETER cannot be used: {error}."
                raise SystemExit(f"The site cannot start: {problem}") from error
        time.sleep(pause)


def refresh() -> None:
    """Read the keys again if they are old. One attempt; if it fails, the old keys stay.

    One thread reads, and the others use the old keys meanwhile. Costs nothing while they are fresh.
    """
    if not _reading().is_due():
        return
    try:
        with within(CONNECT_SECONDS):
            _use(_read())
    except ParameterUnavailable as error:
        log.warning("The secret keys cannot be read again, so the old ones are used: %s", error)


@sensitive_variables()
def _use(keys: list[str]) -> None:
    # Each assignment is one step for other threads. In this order, and with all keys as fallbacks,
    # every key is valid at each moment.
    settings.SECRET_KEY_FALLBACKS = keys
    settings.SECRET_KEY = keys[0]


@sensitive_variables()
def _read() -> list[str]:
    """The keys in the parameter, at least one. Costs 1 request.

    Raises:
        ParameterUnavailable
    """
    lines = [line.strip() for line in read(settings.SECRET_KEY_PARAMETER).splitlines()]
    keys = list(dict.fromkeys(filter(None, lines)))
    if not keys:
        problem = "it contains no key: put one key in each line"
        raise ParameterUnavailable(settings.SECRET_KEY_PARAMETER, problem)
    return keys
