"""Rows of an import that may be registered: checked by the rules of the site, each pair once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.core.exceptions import ValidationError

from accounts import usernames
from accounts.forms import AccountForm
from accounts.imports.files import NEEDED, Row
from accounts.models import User
from accounts.passwords import clean_password_hash
from accounts.services import account_key, cleaned


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that keeps the rules of the site.

    `values` are as they are stored, empty ones as empty texts. `request_id` names its registration,
    `import:ann:ann@example.com`, by username and address as compared; `keys` are those of the
    guards of all its unique values, by attribute. `name_fault` says why no new account may have the
    username (`accounts.usernames`); an account that has it already keeps it.
    """

    row: Row
    values: Mapping[str, str]
    password_hash: str | None
    request_id: str
    keys: Mapping[str, str]
    name_fault: str

    @property
    def pk(self) -> str:
        """The primary key of the account that the registration makes."""
        return account_key(self.request_id)

    @property
    def names(self) -> Mapping[str, str]:
        """Of `keys` those of username and address: an account that has both is this row's."""
        return {name: self.keys[name] for name in NEEDED}


class _RowForm(AccountForm):
    """The values of a row. Whether its username is allowed depends on the stored accounts."""

    def clean_username(self) -> str:
        """Leave that to `_name_fault`."""
        username: str = self.cleaned_data["username"]
        return username


class Candidates:
    """Makes candidates of the rows of one file, from its first line on.

    Memory: about 130 bytes a row, by which a row that comes again is known.
    """

    def __init__(self) -> None:
        self._first = FirstLines()

    def candidate(self, row: Row) -> Candidate:
        """The row, checked.

        Raises:
            ValidationError: it breaks a rule, or is the same as an earlier one.
        """
        candidate = _checked(row)
        first = self._first.note(candidate.request_id, row.line)
        if first != row.line:
            raise ValidationError(f"This is the same as line {first}.", code="again")
        return candidate


def _checked(row: Row) -> Candidate:
    if row.fault:
        raise ValidationError(row.fault, code="unreadable")
    form = _RowForm(row.values)
    if not form.is_valid():
        raise ValidationError([_at_field(name, errors) for name, errors in form.errors.items()])
    values = {name: text or "" for name, text in cleaned(**form.account_values()).items()}
    unique = {name: values[name] for name in User.unique.normalise if values.get(name)}
    compared = [User.unique.normalise[name](values[name]) for name in NEEDED]
    return Candidate(
        row=row,
        values=values,
        password_hash=clean_password_hash(row.values["password_hash"]),
        request_id=":".join(["import", *compared]),
        keys={name: User.unique.key(name, value) for name, value in unique.items()},
        name_fault=_name_fault(values["username"]),
    )


def _name_fault(username: str) -> str:
    try:
        usernames.check_new(username)
        usernames.check_reserved(username)
    except ValidationError as error:
        return _at_field("username", error.messages)
    return ""


def _at_field(name: str, messages: Iterable[object]) -> str:
    return f"{AccountForm.base_fields[name].label}: {' '.join(map(str, messages))}"


class FirstLines:
    """On which line each text came first; keeps 8 bytes of it, hashed under a key of its own.

    Two among 10 million texts are taken for one with a probability of 3 in a million.
    """

    def __init__(self) -> None:
        self._secret = os.urandom(16)
        self._lines: dict[int, int] = {}

    def note(self, text: str, line: int) -> int:
        """The first line of `text`, which is `line` if there was none before."""
        return self._lines.setdefault(self._digest(text), line)

    def __contains__(self, text: str) -> bool:
        return self._digest(text) in self._lines

    def _digest(self, text: str) -> int:
        digest = hashlib.blake2b(text.encode(), digest_size=8, key=self._secret)
        return int.from_bytes(digest.digest())
