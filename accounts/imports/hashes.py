"""Password hashes of other sites, which an import takes over.

Django's hashers trust stored hashes. A hash with a broken part, or of an algorithm whose library is
not installed, causes an error 500 at each sign-in. A hash with a billion rounds takes hours.
Therefore, an import accepts only hashes that this site can check.
"""

import re
from typing import Any

from django.contrib.auth import hashers
from django.contrib.auth.hashers import Argon2PasswordHasher, BasePasswordHasher, identify_hasher
from django.core.exceptions import ValidationError

#: The most characters that an imported hash may have.
MAX_LENGTH = 256
#: An imported hash may take this many times the work of the site's own hashes.
MAX_WORK_RATIO = 10

# The values that Django's `make_password(None)` makes now and made in its first years. Another text
# that begins with "!" may be a password.
_UNUSABLE = re.compile("!([A-Za-z0-9]{40})?")
_NOT_A_HASH = (
    "Password hash: This is not a Django password hash. Leave it empty for an account without a "
    "password."
)
_RANDOM_PARTS = {"salt", "hash", "checksum"}
_BROKEN = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)

# The shapes that were checked successfully; see `_shape`. A file has only a few.
_checked: set[str] = set()


def clean_password_hash(text: str) -> str | None:
    """The hash in `text` as Django stores it (`argon2$argon2id$…`).

    None if no password can sign in: the text is empty or Django's mark for it (`!…`).

    Takes microseconds, and one or two password checks for each new combination of algorithm,
    parameters and lengths.

    Raises:
        ValidationError: not a hash, or one that this site cannot check.
    """
    encoded = text.strip()
    if not encoded or _UNUSABLE.fullmatch(encoded):
        return None
    if len(encoded) > MAX_LENGTH or not encoded.isascii():
        raise ValidationError(_NOT_A_HASH)
    try:
        hasher = identify_hasher(encoded)
    except ValueError as error:
        algorithm, dollar, _parts = encoded.partition("$")
        of_django = {getattr(value, "algorithm", None) for value in vars(hashers).values()}
        disabled = f"Password hash: The hasher {algorithm} is not enabled here (PASSWORD_HASHERS)."
        is_disabled = dollar and algorithm in of_django
        raise ValidationError(disabled if is_disabled else _NOT_A_HASH) from error
    try:
        _try(hasher, encoded)
    except _BROKEN as error:
        raise ValidationError(
            "Password hash: This hash is broken, or this site cannot check its kind."
        ) from error
    return encoded


def _try(hasher: BasePasswordHasher, encoded: str) -> None:
    parts: dict[str, Any] = hasher.decode(encoded)
    for name, value in parts.items():
        own = getattr(hasher, name, None)
        if isinstance(own, int) and not 0 < value <= own * MAX_WORK_RATIO:
            raise ValueError(f"{name} of {value} where this site has {own}")
    hasher.must_update(encoded)
    # The libraries of Argon2 and bcrypt parse the text. Other hashers compare it with a text that
    # they make, so a number like `+1000` or a truncated hash would match no password.
    is_compared = "hash" in parts and not isinstance(hasher, Argon2PasswordHasher)
    numbers = [value for value in parts.values() if isinstance(value, int)]
    if is_compared and not all(f"${number}$" in encoded for number in numbers):
        raise ValueError("a number is not spelled as this site does")
    shape = _shape(parts)
    if shape not in _checked:
        hasher.verify("", encoded)
        if is_compared:
            made: dict[str, str] = hasher.decode(hasher.encode("", hasher.salt()))
            if len(parts["hash"]) != len(made["hash"]):
                raise ValueError("the hash is too short or too long")
        _checked.add(shape)


def _shape(parts: dict[str, Any]) -> str:
    """The parts that decide whether a hash can be checked; of a random part, the length."""
    return repr(
        {name: len(part) if name in _RANDOM_PARTS else part for name, part in parts.items()}
    )
