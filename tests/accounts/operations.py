"""Every operation that writes an account: what it acts on, and what is stored when it succeeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password

from accounts.emails import confirmation
from accounts.emails.change import Confirmed, cancel_change, confirm_change, request_change
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
from tests.emailchanges import NEW, token_of
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    changes_of,
    make_user,
    stored_items,
)
from tests.session_maps import begun, let_pass, only, read_for

ANN = {"username": "Ann", "email": "ann@example.org", "full_name": "Ann", "request_id": "ann"}
OTHER_PASSWORD = "another good password"
THIRD = "third@example.org"


def ann() -> User:
    """An account whose password hash is outdated."""
    outdated = make_password(PASSWORD, salt="short", hasher="md5")
    return make_user(**ANN, password=None, password_hash=outdated)


def waiting_ann() -> User:
    """The same account with a change of email address that waits for its link."""
    user = ann()
    request_change(user, NEW)
    return user


def ann_in_a_session() -> User:
    """The same account as one of its two sessions reads it."""
    user = ann()
    mine = begun(user, browser="mine")
    begun(user, browser="other")
    return read_for(user, mine)


def ann_with_all_sessions() -> User:
    """The same account with as many sessions as it can have."""
    user = ann()
    for _ in range(sessions.MOST):
        begun(user, browser="old")
    return User.get(user.pk)


def ann_seen_long_ago() -> User:
    """The same account with one session, which was last seen an hour ago."""
    user = ann()
    let_pass(user, begun(user), "seenAt", 3600)
    return User.get(user.pk)


@dataclass(frozen=True)
class Operation:
    """`act` is one operation on the account that `given` makes. It sends a request of `api`.

    `is_done` says whether the stored account has what was asked for. `changes` is how often its
    version was raised; None if the account is deleted. `is_recognized` says whether the same call
    again finds its own write; if not, it is another change: another hash, time or session.
    """

    name: str
    api: str
    act: Callable[[Any], object]
    is_done: Callable[[User], bool]
    changes: int | None = 1
    given: Callable[[], User | None] = ann
    is_recognized: bool = True

    def is_done_once(self) -> bool:
        """Whether what was asked for is stored, once, and nothing else; the guards are right."""
        assert_guards_match_users()
        if self.changes is None:
            return stored_items() == {}
        user = User.get(account_key("ann"))
        assert [pk for pk in stored_items() if "#" not in pk] == [user.pk]
        assert changes_of(user, user) == self.changes
        return self.is_done(user)

    def in_hand(self, user: User | None, result: object) -> User:
        """The account object that the caller has afterwards."""
        if isinstance(result, Confirmed):
            return result.user
        found = result if isinstance(result, User) else user
        assert found is not None
        return found


def _has(**values: str | None) -> Callable[[User], bool]:
    return lambda user: {name: getattr(user, name) for name in values} == values


def _browsers(*names: str) -> Callable[[User], bool]:
    return lambda user: sorted(each.browser for each in sessions.alive(user)) == sorted(names)


def _end_other(user: User) -> None:
    [other] = [each.id for each in sessions.alive(user) if each.id != user.session_id]
    sessions.end(user, other)


def _see(user: User) -> User:
    sessions.seen(user, only(user), address="192.0.2.8")
    # A page uses the account as it read it, so the object in hand is not updated.
    return User.get(user.pk)


TRANSACTION, UPDATE = "TransactWriteItems", "UpdateItem"


def _transaction(
    name: str, act: Callable[[Any], object], is_done: Callable[[User], bool], **more: Any
) -> Operation:
    return Operation(name, TRANSACTION, act, is_done, **more)


def _update(
    name: str, act: Callable[[Any], object], is_done: Callable[[User], bool], **more: Any
) -> Operation:
    return Operation(name, UPDATE, act, is_done, **more)


def _is_confirmed(user: User) -> bool:
    return user.is_confirmed


def _is_deleted(_user: User) -> bool:
    return False


OLD, BEA, SPELLING = "ann@example.org", "Bea@example.org", "ANN@example.org"
_WAITING: dict[str, Any] = {"given": waiting_ann, "changes": 2}
_IN_A_SESSION: dict[str, Any] = {"given": ann_in_a_session, "changes": 0}

OPERATIONS = [
    _transaction(
        "register",
        lambda _none: make_user(**ANN),
        _has(username="Ann", email=OLD),
        changes=0,
        given=lambda: None,
    ),
    _transaction(
        "change_username", lambda user: change_username(user, "Bea"), _has(username="Bea")
    ),
    _transaction("change_email", lambda user: change_email(user, BEA), _has(email=BEA)),
    _update(
        "change_email's spelling", lambda user: change_email(user, SPELLING), _has(email=SPELLING)
    ),
    _update(
        "edit_profile",
        lambda user: edit_profile(user, full_name="", vat_id="GB1"),
        _has(full_name=None, vat_id="GB1"),
    ),
    _update(
        "change_password",
        lambda user: change_password(user, OTHER_PASSWORD),
        lambda user: user.check_password(OTHER_PASSWORD) and sessions.alive(user) == [],
        is_recognized=False,
    ),
    _update(
        "change_password in a session",
        lambda user: change_password(user, OTHER_PASSWORD),
        lambda user: user.check_password(OTHER_PASSWORD) and _browsers("mine")(user),
        given=ann_in_a_session,
        is_recognized=False,
    ),
    _update("mark_confirmed", confirmation.mark_confirmed, _is_confirmed, is_recognized=False),
    _update(
        "confirm",
        lambda user: confirmation.confirm(confirmation.link_token(user)),
        _is_confirmed,
    ),
    _update("deactivate", deactivate, lambda user: not user.is_active),
    _transaction("delete", delete, _is_deleted, changes=None),
    _update(
        "upgrade_hash",
        lambda user: user.check_password(PASSWORD),
        lambda user: "$short$" not in user.password and user.check_password(PASSWORD),
        changes=0,
    ),
    # A change of the email address that waits for its link
    _update(
        "request_change",
        lambda user: request_change(user, NEW),
        _has(email=OLD, awaited_email=NEW),
    ),
    _update(
        "request_change again",
        lambda user: request_change(user, NEW),
        _has(email=OLD, awaited_email=NEW),
        **_WAITING,
    ),
    _update(
        "request_change to another address",
        lambda user: request_change(user, THIRD),
        _has(email=OLD, awaited_email=THIRD),
        **_WAITING,
    ),
    _transaction(
        "confirm_change",
        lambda user: confirm_change(token_of(user)),
        _has(email=NEW, awaited_email=None),
        **_WAITING,
    ),
    _update("cancel_change", cancel_change, _has(email=OLD, awaited_email=None), **_WAITING),
    *(
        _transaction(
            f"change_email to {email} while a change to {NEW} waits",
            lambda user, email=email: change_email(user, email),
            _has(email=email, awaited_email=None),
            **_WAITING,
        )
        for email in (NEW, THIRD)
    ),
    # Sessions
    _update(
        "sessions.begin",
        sessions.begin,
        lambda user: bool(user.last_login and sessions.alive(user)),
        changes=0,
    ),
    _update(
        "sessions.begin in a full account",
        lambda user: sessions.begin(user, browser="new"),
        _browsers("new", *["old"] * (sessions.MOST - 1)),
        changes=0,
        given=ann_with_all_sessions,
        is_recognized=False,
    ),
    _update("sessions.end", _end_other, _browsers("mine"), **_IN_A_SESSION),
    _update(
        "sessions.end of its own",
        lambda user: sessions.end(user, user.session_id),
        _browsers("other"),
        **_IN_A_SESSION,
    ),
    _update("sessions.end_others", sessions.end_others, _browsers("mine"), **_IN_A_SESSION),
    _update("sessions.end_all", sessions.end_all, _browsers(), **_IN_A_SESSION),
    _update(
        "sessions.seen",
        _see,
        lambda user: only(user).address == "192.0.2.8",
        changes=0,
        given=ann_seen_long_ago,
    ),
]

each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
