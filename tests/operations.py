"""Every operation that writes an account, and what must be stored when it has succeeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password

from accounts.models import User
from accounts.services import (
    account_key,
    change_email,
    change_password,
    change_username,
    deactivate,
    delete,
    edit_profile,
)
from accounts.sessions import services as sessions
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    changes_of,
    make_user,
    stored_items,
)

ANN = {"username": "Ann", "email": "ann@example.org", "full_name": "Ann", "request_id": "ann"}
OTHER_PASSWORD = "another good password"


@dataclass(frozen=True)
class Operation:
    """`act` is one operation on the account `ann`, which it sends as a request of `api`.

    `is_done` says of the account as stored whether it has what was asked for; `changes` is how
    often its version was raised, None where it is gone.
    """

    name: str
    api: str
    act: Callable[[Any], object]
    is_done: Callable[[User], bool]
    changes: int | None = 1

    def given(self) -> User | None:
        """Make the account that is acted on; None where the operation makes it."""
        if self.name == "register":
            return None
        outdated = make_password(PASSWORD, salt="short", hasher="md5")
        return make_user(**ANN, password=None, password_hash=outdated)

    def assert_done_once(self) -> None:
        """What was asked for is stored, nothing besides, and the guards are right."""
        assert_guards_match_users()
        items = stored_items()
        if self.changes is None:
            assert items == {}
            return
        assert len(items) == 3
        user = User.get(account_key("ann"))
        assert self.is_done(user)
        assert changes_of(user, user) == self.changes


def _has_new_hash(user: User) -> bool:
    return "$short$" not in user.password and user.check_password(PASSWORD)


OPERATIONS = [
    Operation(
        "register",
        "TransactWriteItems",
        lambda _none: make_user(**ANN),
        lambda user: (user.username, user.email) == ("Ann", "ann@example.org"),
        changes=0,
    ),
    Operation(
        "change_username",
        "TransactWriteItems",
        lambda user: change_username(user, "Bea"),
        lambda user: user.username == "Bea",
    ),
    Operation(
        "change_email",
        "TransactWriteItems",
        lambda user: change_email(user, "Bea@example.org"),
        lambda user: user.email == "Bea@example.org",
    ),
    Operation(
        "change_email's spelling",
        "UpdateItem",
        lambda user: change_email(user, "ANN@example.org"),
        lambda user: user.email == "ANN@example.org",
    ),
    Operation(
        "edit_profile",
        "UpdateItem",
        lambda user: edit_profile(user, full_name="", vat_id="GB1"),
        lambda user: (user.full_name, user.vat_id) == (None, "GB1"),
    ),
    Operation(
        "change_password",
        "UpdateItem",
        lambda user: change_password(user, OTHER_PASSWORD),
        lambda user: user.check_password(OTHER_PASSWORD),
    ),
    Operation("deactivate", "UpdateItem", deactivate, lambda user: not user.is_active),
    Operation("delete", "TransactWriteItems", delete, lambda _user: False, changes=None),
    Operation(
        "sessions.begin",
        "UpdateItem",
        sessions.begin,
        lambda user: bool(user.last_login and sessions.alive(user)),
        changes=0,
    ),
    Operation(
        "upgrade_hash",
        "UpdateItem",
        lambda user: user.check_password(PASSWORD),
        _has_new_hash,
        changes=0,
    ),
]

each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
