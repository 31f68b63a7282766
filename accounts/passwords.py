"""Password hashing for the whole site: Argon2id, and only a few hashes at once in each process.

A hash takes memory and a core on purpose. Without a bound, many sign-ins at once take the memory of
the whole machine; with it they wait, and the last ones get a 503. Every hash and check of a
password goes through `make_password` and `check_password` of this module, not through Django's
(ruff holds that).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.contrib.auth import hashers
from django.contrib.auth.hashers import Argon2PasswordHasher, BasePasswordHasher, identify_hasher
from django.core.exceptions import ValidationError
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


MAX_LENGTH = 256
#: How many times the work of the site's own hashes one may ask for.
MAX_WORK_RATIO = 10

# What Django's `make_password(None)` makes, and made in its first years. Whatever else begins so
# may be somebody's password.
_UNUSABLE = re.compile("!([A-Za-z0-9]{40})?")
_RANDOM_PARTS = {"salt", "hash", "checksum"}
_BROKEN = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)

# Shapes that a hasher has gone through with, see `_shape`; a handful in a whole file.
_tried: set[str] = set()


def clean_password_hash(text: str) -> str | None:
    """The hash in `text` as Django stores it (`argon2$argon2id$…`).

    None where no password opens the account: the text is empty, or Django's mark for it (`!…`).

    Costs microseconds, and one or two whole checks of a password for each new combination of
    algorithm, parameters and lengths.

    Raises:
        ValidationError: no hash, or none that this site can check.
    """
    encoded = text.strip()
    if not encoded:
        return None
    if len(encoded) > MAX_LENGTH or not encoded.isascii():
        raise _no_hash()
    if _UNUSABLE.fullmatch(encoded):
        return None
    try:
        hasher = identify_hasher(encoded)
    except ValueError as error:
        algorithm, dollar, _parts = encoded.partition("$")
        if dollar and algorithm in _of_django():
            raise _not_enabled(algorithm) from error
        raise _no_hash() from error
    try:
        _try(hasher, encoded)
    except _BROKEN as error:
        raise ValidationError(
            "Password hash: This one is broken, or this site cannot check its kind.", code="broken"
        ) from error
    return encoded


def _try(hasher: BasePasswordHasher, encoded: str) -> None:
    parts: dict[str, Any] = hasher.decode(encoded)
    for name, value in parts.items():
        own = getattr(hasher, name, None)
        if isinstance(own, int) and not 0 < value <= own * MAX_WORK_RATIO:
            raise ValueError(f"{name} of {value} where this site has {own}")
    hasher.must_update(encoded)
    # The libraries of Argon2 and bcrypt read the text. Other hashers compare it with one that they
    # make: no password gives a number spelled `+1000`, or a hash that a narrow column cut off.
    is_compared = "hash" in parts and not isinstance(hasher, Argon2PasswordHasher)
    numbers = [value for value in parts.values() if isinstance(value, int)]
    if is_compared and not all(f"${number}$" in encoded for number in numbers):
        raise ValueError("a number is not spelled as this site does")
    shape = _shape(parts)
    if shape not in _tried:
        hasher.verify("", encoded)
        if is_compared and len(parts["hash"]) != _length_of_hashes(hasher):
            raise ValueError("the hash is too short, or too long")
        _tried.add(shape)


def _length_of_hashes(hasher: BasePasswordHasher) -> int:
    made: dict[str, str] = hasher.decode(hasher.encode("", hasher.salt()))
    return len(made["hash"])


def _shape(parts: dict[str, Any]) -> str:
    """All that decides whether a check goes through: every part, of the random ones the length."""
    return repr(
        {name: len(part) if name in _RANDOM_PARTS else part for name, part in parts.items()}
    )


def _of_django() -> set[str | None]:
    """The algorithms of all hashers that Django brings along."""
    classes = (each for each in vars(hashers).values() if isinstance(each, type))
    return {each.algorithm for each in classes if issubclass(each, BasePasswordHasher)}


def _not_enabled(algorithm: str) -> ValidationError:
    return ValidationError(
        f"Password hash: The hasher {algorithm} is not enabled here (PASSWORD_HASHERS).",
        code="not_enabled",
    )


def _no_hash() -> ValidationError:
    return ValidationError(
        "Password hash: This is none of Django's; leave it empty for an account without password.",
        code="invalid",
    )
