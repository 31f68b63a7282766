"""Accounts for tests, and their stored items."""

import itertools
from typing import Any

import pytest

from accounts.models import User
from accounts.services import register
from dynamo import Transaction, Unique
from dynamo.auth import make_password
from dynamo.model.unique import UniqueKey
from tests.items import put_item, stored_items

PASSWORD = "correct horse battery"  # of every account that tests make

_numbers = itertools.count(1)
_first_versions: dict[str, int] = {}


def make_user(**values: Any) -> User:
    """An account with these values, and defaults for the others."""
    number = next(_numbers)
    defaults = {
        "username": f"user{number}",
        "email": f"user{number}@example.com",
        "password": PASSWORD,
    }
    user = register(**(defaults | values))
    _first_versions[user.pk] = user.version
    return user


def change_password(user: User, password: str | None, *, write: Transaction | None = None) -> None:
    """Give `user` another password; None: none that can sign in."""
    user.change(password=make_password(password), write=write)


def changes_of(user: User, stored: User | None = None) -> int:
    """How often an account of `make_user` has changed since."""
    stored = stored or User.get(user.pk)
    return int(stored.version) - _first_versions[user.pk]


def set_stored(user: User, **attributes: Any) -> None:
    """Store attributes past all rules: text, a number, None to remove one, or as on the wire."""
    item = stored_items()[user.pk] | attributes
    kept = {name: value for name, value in item.items() if value is not None}
    put_item(User.table(), **kept)


def guard_owner(key: str) -> str | None:
    """The owner of a guard item; None if there is no such guard."""
    item = stored_items().get(key)
    return item["owner"]["S"] if item else None


def stored_user(pk: str) -> dict[str, Any] | None:
    """The item of an account as on the wire; None if it is not stored."""
    return stored_items().get(pk)


def assert_guards_match_users(items: dict[str, dict[str, Any]] | None = None) -> None:
    """Every user has its guards, and every guard its user."""
    items = stored_items() if items is None else items
    users = [User.from_raw_data(item) for pk, item in items.items() if "#" not in pk]
    expected = {key: user.pk for user in users for key in User.guard_keys_of(user.stored).values()}
    guards = {pk: item for pk, item in items.items() if "#" in pk}
    assert {pk: item["owner"]["S"] for pk, item in guards.items()} == expected


def make_unique(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Declare one more unique attribute of accounts."""
    unique = UniqueKey.of(Unique(name), User.get_attributes())
    monkeypatch.setattr(User, "_unique_keys", [*User._unique_keys, unique])
