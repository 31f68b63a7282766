"""Password hashing: only a few hashes at once in each process.

A hash takes much memory and a core on purpose. Without a limit, many sign-ins at once would take
the memory of the whole machine. With the limit they wait, and the last ones get a 503. Clients take
turns, so a client with many sign-ins does not delay others. Therefore, hash and check passwords
with this module, not with Django's functions.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from django.contrib.auth import hashers
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from dynamo.runtime.gates import Gate, Place, let_pages_go_first, turn_passed_on
from dynamo.runtime.processes import PerProcess

#: Hashes at once in a process, which need 38 MiB. Two cores make about 80 hashes per second.
AT_ONCE = 2

#: The most hashes that wait in a process, and the most of one client. A whole office may sign in at
#: the same time.
WAITING, WAITING_OF_CLIENT = 96, 30

#: Longer passwords are refused before they are hashed.
PASSWORD_MAX_LENGTH = 1024

#: A page waits for its turn for at most this time. The rest of its deadline is for its requests.
WAIT_SECONDS = 3.0

# Separate threads make the hashes, because glibc keeps the memory of a hash for the thread that
# made it. With 24 request threads it kept 450 MB.
_threads = PerProcess(
    lambda: ThreadPoolExecutor(AT_ONCE, "password hash", initializer=let_pages_go_first)
)

_gate = PerProcess(
    lambda: Gate("a password hash", AT_ONCE, WAITING, per=WAITING_OF_CLIENT, each=AT_ONCE)
)
#: The client for which hashes are made. Without an address, each call counts as another client.
hashing_for: ContextVar[str | None] = ContextVar("hashing_for", default=None)
_place: ContextVar[Place | None] = ContextVar("place", default=None)

Result = TypeVar("Result")


class Argon2idHasher(hashers.Argon2PasswordHasher):
    """Argon2id with OWASP's minimum parameters: 19 MiB, 2 passes, 1 thread.

    Django's defaults take 100 MiB and 8 threads. A stored hash with other parameters is checked
    with these, and replaced at the next successful sign-in.

    Source: OWASP Password Storage Cheat Sheet, "Argon2id".
    """

    memory_cost = 19 * 1024  # KiB
    time_cost = 2
    parallelism = 1


def is_text(typed: str) -> bool:
    """Whether `typed` can be stored. Python reads bytes that are not UTF-8 as lone surrogates."""
    try:
        typed.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_new_password(password: str) -> None:
    """Refuse a password that is not text, or too long to be hashed.

    Raises:
        ValidationError
    """
    if not is_text(password):
        raise ValidationError(_("This is not valid text."), code="invalid")
    if len(password) > PASSWORD_MAX_LENGTH:
        limit = {"limit": PASSWORD_MAX_LENGTH}
        raise ValidationError(_("Use at most %(limit)s characters."), "max_length", limit)


@contextmanager
def queued() -> Iterator[Place]:
    """Take a place in the queue for the hashes of the body.

    A client with too many places is refused here, before the body sends requests. May be nested.

    Raises:
        GateFull: `WAITING` wait, or `WAITING_OF_CLIENT` of this client.
    """
    if place := _place.get():
        yield place
        return
    with _gate().place(hashing_for.get() or object()) as place:
        token = _place.set(place)
        try:
            yield place
        finally:
            _place.reset(token)


@sensitive_variables()
def make_password(password: str | None) -> str:
    """The hash of `password` by the first of PASSWORD_HASHERS; for None, one that nothing matches.

    Raises:
        Busy: no turn to hash was free within `WAIT_SECONDS` or the page's deadline. It is a
            `GateFull` if too many hashes wait. While it waits, the page passes on its turn; it is
            also Busy if it gets no other turn in time.
    """
    if password is None:
        return hashers.make_password(None)
    return _in_turn(hashers.make_password, password)


@sensitive_variables()
def verify_password(password: str, encoded: str) -> tuple[bool, bool]:
    """Whether `encoded` is the hash of `password`, and whether the hash is outdated.

    Raises:
        Busy: see `make_password`. The password was not checked.
    """
    return _in_turn(hashers.verify_password, password, encoded)


@sensitive_variables()
def check_password(password: str, encoded: str) -> bool:
    """Whether `encoded` is the hash of `password`. Raises Busy."""
    is_correct, _is_outdated = verify_password(password, encoded)
    return is_correct


def _in_turn(function: Callable[..., Result], *arguments: str) -> Result:
    # A page without a turn must not delay the pages that wait for a hash.
    with turn_passed_on(), queued() as place, place.inside(WAIT_SECONDS):
        # The variables are marked here too, because a crash report shows the frames of this thread.
        return _threads().submit(sensitive_variables()(function), *arguments).result()
