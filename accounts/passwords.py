"""Password hashing for the whole site: Argon2id, and only a few hashes at once in each process.

A hash takes memory and a core on purpose. Without a bound, many sign-ins at once take the memory of
the whole machine; with it they wait, and the last ones get a 503. Every hash and check of a
password goes through `make_password` and `check_password` of this module, not through Django's
(ruff holds that).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.contrib.auth import hashers
from django.views.decorators.debug import sensitive_variables

from dynamo.client.deadline import page_seconds_left
from dynamo.exceptions import Busy
from dynamo.processes import PerProcess

#: Hashes at once in a process: 38 MiB. Two cores make about 80 of them per second.
AT_ONCE = 2

#: So long a page waits for its turn. The rest of its deadline is for its requests.
WAIT_SECONDS = 3.0

# Threads of their own, because glibc keeps the memory of a hash for the thread that made it: with
# 24 request threads it kept 450 MB.
_threads = PerProcess(lambda: ThreadPoolExecutor(AT_ONCE, thread_name_prefix="password hash"))

Result = TypeVar("Result")


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
        Busy: other hashes went before for `WAIT_SECONDS`, or until the page's deadline.
    """
    if password is None:
        return hashers.make_password(None)
    return _in_turn(hashers.make_password, password)


@sensitive_variables()
def check_password(
    password: str, encoded: str, upgrade: Callable[[str], None] | None = None
) -> bool:
    """Whether `encoded` is the hash of `password`; calls `upgrade` if the hash is outdated.

    Raises:
        Busy: see `make_password`. The password was not checked.
        what `upgrade` raises.
    """
    is_correct, must_update = _in_turn(hashers.verify_password, password, encoded)
    # Not in turn: it hashes again, and asks DynamoDB.
    if is_correct and must_update and upgrade is not None:
        upgrade(password)
    return is_correct


def _in_turn(function: Callable[..., Result], *arguments: str) -> Result:
    left = page_seconds_left()
    seconds = WAIT_SECONDS if left is None else min(WAIT_SECONDS, left)
    # Marked again: what a crash report hides goes by the thread's own frames.
    turn = _threads().submit(sensitive_variables()(function), *arguments)
    try:
        return turn.result(seconds)
    except TimeoutError:
        if turn.cancel():
            raise Busy("a password hash") from None
    # It has begun, so it will soon be there.
    return turn.result()
