"""Password hashing for the whole site: Argon2id, and only a few hashes at once in each process.

A hash takes memory and a core on purpose. Without a bound, many sign-ins at once take the memory of
the whole machine; with it they wait, and the last ones get a 503. Every hash and check of a
password goes through `make_password` and `check_password` of this module, not through Django's
(ruff holds that).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.contrib.auth import hashers
from django.views.decorators.debug import sensitive_variables

from dynamo.deadline import operation_ends_at, within
from dynamo.exceptions import Busy
from dynamo.perprocess import PerProcess

#: Hashes at once in a process: 38 MiB. Two cores make about 80 of them per second.
AT_ONCE = 2

#: So long a page waits for its turn. The rest of its deadline is for its requests.
WAIT_SECONDS = 3.0

_slots = PerProcess(lambda: threading.BoundedSemaphore(AT_ONCE))


class Argon2idHasher(hashers.Argon2PasswordHasher):
    """Argon2id with OWASP's minimum parameters: 19 MiB, 2 passes, 1 thread.

    Django's defaults take 100 MiB and 8 threads. A stored hash with other parameters is checked
    with its own, and replaced at the next successful sign-in.

    Source: OWASP Password Storage Cheat Sheet, "Argon2id".
    """

    memory_cost = 19 * 1024  # KiB
    time_cost = 2
    parallelism = 1


@sensitive_variables()
def make_password(password: str | None) -> str:
    """The hash of `password` by the site's first hasher; of None, one that no password matches.

    Raises:
        Busy: other hashes took all slots for `WAIT_SECONDS`, or until the page's deadline.
    """
    if password is None:
        return hashers.make_password(None)
    with _slot():
        return hashers.make_password(password)


@sensitive_variables()
def check_password(
    password: str, encoded: str, upgrade: Callable[[str], None] | None = None
) -> bool:
    """Whether `encoded` is the hash of `password`; calls `upgrade` if the hash is outdated.

    Raises:
        Busy: see `make_password`. The password was not checked.
        what `upgrade` raises.
    """
    with _slot():
        is_correct, must_update = hashers.verify_password(password, encoded)
    # Outside of the slot: it hashes again, and asks DynamoDB.
    if is_correct and must_update and upgrade is not None:
        upgrade(password)
    return bool(is_correct)


@contextmanager
def _slot() -> Iterator[None]:
    slots = _slots()
    with within(WAIT_SECONDS):
        seconds = operation_ends_at() - time.monotonic()
    if not slots.acquire(timeout=max(0.0, seconds)):
        raise Busy("a password hash")
    try:
        yield
    finally:
        slots.release()
