"""The rows of a file that can be registered: they are valid and repeat no earlier row."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError

from accounts import usernames
from accounts.attributes import USERNAME
from accounts.forms import AccountForm
from accounts.imports.files import REQUIRED, Row
from accounts.imports.hashes import clean_password_hash
from accounts.models import VALUES, User
from accounts.services import account_key
from dynamo.extending import SEPARATOR


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row with valid values.

    `values` are clean. `request_id` names its registration by the
    comparable username and email address: `import:ann:ann@example.com`. `keys` are the keys of the
    guard items of all its unique values, by attribute. If no new account may have the username
    (`accounts.usernames`), `name_fault` says why; an existing account keeps its username.
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


def checked(row: Row, first: FirstLines) -> Candidate:
    """The row, if it is valid and repeats no row that `first` has noted.

    Raises:
        ValidationError: it breaks a rule or repeats an earlier row.
    """
    if row.fault:
        raise ValidationError(row.fault, code="unreadable")
    form = _RowForm(row.values)
    if not form.is_valid():
        raise ValidationError([_at_field(name, errors) for name, errors in form.errors.items()])
    values = form.account_values()
    name_fault = ""
    try:
        values |= User.cleaned(username=values["username"])
        usernames.check_reserved(values["username"])
    except ValidationError as error:
        name_fault = _at_field("username", error.messages)
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


def _at_field(name: str, messages: Iterable[object]) -> str:
    return f"{AccountForm.base_fields[name].label}: {' '.join(map(str, messages))}"


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
