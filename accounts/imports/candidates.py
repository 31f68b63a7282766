"""The rows of a file that can be registered: they are valid and repeat no earlier row.

A row may have a password hash of another site. Django's hashers trust stored hashes. A hash with a
broken part, or of an algorithm whose library is not installed, causes an error 500 at each sign-in.
One with a billion rounds takes hours. So it must be one that this site can check.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import hashers
from django.contrib.auth.hashers import Argon2PasswordHasher, BasePasswordHasher, identify_hasher
from django.core.exceptions import ValidationError

from accounts.attributes import USERNAME, check_reserved
from accounts.forms import AccountForm
from accounts.imports.files import REQUIRED, Row
from accounts.models import VALUES, User
from accounts.services import account_key
from dynamo.extending import SEPARATOR

#: Characters of an imported hash.
MAX_LENGTH = 256
#: An imported hash may take this many times the work of the site's own hashes.
MAX_WORK_RATIO = 10

# Made by Django's `make_password(None)`, today and in its first years. Another text that begins
# with "!" may be a password.
_UNUSABLE = re.compile("!([A-Za-z0-9]{40})?")
_RANDOM_PARTS = {"salt", "hash", "checksum"}
_BROKEN = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)

# Shapes that were checked successfully, see `_shape`. A file has only a few.
_checked: set[str] = set()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row with valid values.

    `values` are clean. `request_id` names its registration by the
    comparable username and email address: `import:ann:ann@example.com`. `keys` are the keys of the
    guard items of all its unique values, by attribute. If no new account may have the username
    (`accounts.attributes`), `name_fault` says why; an existing account keeps its username.
    """

    row: Row
    values: Mapping[str, Any]
    password_hash: str | None
    request_id: str
    keys: Mapping[str, str]
    name_fault: str

    @property
    def pk(self) -> str:
        """The primary key of the account that the registration makes."""
        return account_key(self.request_id)

    @property
    def identity(self) -> Mapping[str, str]:
        """The `keys` of username and email address. An account that has both is this row's."""
        return {name: self.keys[name] for name in REQUIRED}


class _RowForm(AccountForm):
    """Accepts older usernames: whether one is allowed depends on the stored accounts."""

    username = VALUES["username"].form_field(USERNAME)
    may_be_reserved = True


class FirstLines:
    """The line on which each text came first. Keeps 8 bytes of a hash with a random key per text.

    The probability that two of 10 million texts are confused is 3 in a million.
    """

    def __init__(self) -> None:
        self._secret = os.urandom(16)
        self._lines: dict[int, int] = {}

    def note(self, text: str, line: int) -> int:
        """The first line of `text`; `line` if it is new."""
        return self._lines.setdefault(self._digest(text), line)

    def __contains__(self, text: str) -> bool:
        return self._digest(text) in self._lines

    def _digest(self, text: str) -> int:
        digest = hashlib.blake2b(text.encode(), digest_size=8, key=self._secret)
        return int.from_bytes(digest.digest())


def checked(row: Row, first: FirstLines) -> Candidate:
    """The row, if it is valid and repeats no row that `first` has noted.

    Raises:
        ValidationError: it breaks a rule or repeats an earlier row.
    """
    if row.fault:
        raise ValidationError(row.fault, code="unreadable")
    form = _RowForm(row.values)
    if not form.is_valid():
        raise ValidationError(form.faults())
    values = form.account_values()
    name_fault = ""
    try:
        values |= User.cleaned(username=values["username"])
        check_reserved(values["username"])
    except ValidationError as error:
        name_fault = f"{form.fields['username'].label}: {' '.join(error.messages)}"
    keys = {
        name: key
        for name in User.unique_names()
        if (key := User.guard_key_of(**{name: values.get(name)})) is not None
    }
    compared = [keys[name].partition(SEPARATOR)[2] for name in REQUIRED]
    password_hash = clean_password_hash(row.values["password_hash"])
    request_id = ":".join(["import", *compared])
    line = first.note(request_id, row.line)
    if line != row.line:
        raise ValidationError(f"This is the same as line {line}.", code="again")
    return Candidate(row, values, password_hash, request_id, keys, name_fault)


# Password hashes ----------------------------------------------------------------------------------


def clean_password_hash(text: str) -> str | None:
    """The hash in `text` as Django stores it (`argon2$argon2id$…`).

    None if no password can sign in: the text is empty or Django's mark for it (`!…`).

    Takes microseconds, and one or two password checks for each new combination of algorithm,
    parameters and lengths.

    Raises:
        ValidationError: not a hash, or one that this site cannot check.
    """
    encoded = text.strip()
    if not encoded or (len(encoded) <= MAX_LENGTH and _UNUSABLE.fullmatch(encoded)):
        return None
    if len(encoded) > MAX_LENGTH or not encoded.isascii():
        raise _not_a_hash()
    try:
        hasher = identify_hasher(encoded)
    except ValueError as error:
        algorithm, dollar, _parts = encoded.partition("$")
        if dollar and algorithm in _django_algorithms():
            raise ValidationError(
                f"Password hash: The hasher {algorithm} is not enabled here (PASSWORD_HASHERS).",
                code="not_enabled",
            ) from error
        raise _not_a_hash() from error
    try:
        _try(hasher, encoded)
    except _BROKEN as error:
        raise ValidationError(
            "Password hash: This hash is broken, or this site cannot check its kind.", code="broken"
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
    """What decides whether a check succeeds: every part, or its length if the part is random."""
    return repr(
        {name: len(part) if name in _RANDOM_PARTS else part for name, part in parts.items()}
    )


def _django_algorithms() -> set[str | None]:
    classes = (each for each in vars(hashers).values() if isinstance(each, type))
    return {each.algorithm for each in classes if issubclass(each, BasePasswordHasher)}


def _not_a_hash() -> ValidationError:
    return ValidationError(
        "Password hash: This is not a Django password hash. Leave it empty for an account without "
        "a password.",
        code="invalid",
    )
