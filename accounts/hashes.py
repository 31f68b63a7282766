"""Password hashes that come from elsewhere: only such as a sign-in can check are let in.

Django's hashers trust what is stored. A hash with a broken part, or of an algorithm whose library
is not installed, is an error 500 each time its owner signs in; one that asks for a billion rounds
holds a worker for hours.
"""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth import hashers
from django.contrib.auth.hashers import Argon2PasswordHasher, BasePasswordHasher, identify_hasher
from django.core.exceptions import ValidationError

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
