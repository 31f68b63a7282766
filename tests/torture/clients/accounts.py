"""Clients that register, find, change and delete accounts with few shared values."""

from __future__ import annotations

import random
import time
import uuid
from collections import deque
from typing import Any

from accounts import services
from accounts.exceptions import (
    AccountError,
    AccountRequestReused,
    StaleUser,
    UnknownUser,
    ValueTaken,
)
from accounts.models import User
from dynamo._internal.items import Item
from dynamo.exceptions import DynamoError, Refused
from tests.site_operations import ACCOUNTS
from tests.torture.history import Journal, Running

#: All clients use the same few values, and new ones after so many seconds: so the history of a
#: value stays short enough to be checked.
ERA_SECONDS = 20.0
VALUES = 6

PASSWORD_HASH = "!of-the-torture"

#: Operations that change neither a value nor the name of an account.
OTHERS = {
    each.name: each.act
    for each in ACCOUNTS
    if each.name
    in {
        *("activate", "cancel_change", "change_password", "deactivate", "grant_staff"),
        *("mark_confirmed", "record_sign_in", "request_change", "revoke_staff"),
        *("sessions.begin", "sessions.end_all"),
    }
}

#: How many request ids, and how many copies of accounts, a client keeps for later.
KEPT = 8


def shared_value(chance: random.Random) -> str:
    """A username that other clients use too, in one of its spellings."""
    name = f"n{int(time.monotonic() / ERA_SECONDS)}-{chance.randrange(VALUES)}"
    return name.upper() if chance.random() < 0.2 else name


def shared_address(chance: random.Random) -> str:
    """An email address that other clients use too."""
    return f"{shared_value(chance)}@example.org"


class AccountClient:
    """A client. It repeats sign-ups that had no answer.

    It also uses request ids again with other values: if their account was deleted, that makes
    another one with the same key. And it acts on old copies of accounts.
    """

    def __init__(self, journal: Journal, chance: random.Random) -> None:
        self._journal = journal
        self._chance = chance
        self._unanswered: list[dict[str, str]] = []
        self._requests: deque[str] = deque(maxlen=KEPT)
        self._copies: deque[Item] = deque(maxlen=KEPT)

    def step(self) -> None:
        """Make one or two calls."""
        what = self._chance.random()
        if self._unanswered and what < 0.5:
            self._register(self._unanswered.pop())
        elif what < 0.4:
            self._register(self._drawn(self._new_request()))
        elif self._requests and what < 0.55:
            self._register(self._drawn(self._chance.choice(self._requests)))
        elif self._copies and what < 0.65:
            self._act(User.from_raw_data(self._chance.choice(self._copies)))
        else:
            user = self._find()
            if user is not None:
                self._copies.append(user.stored)
                self._act(user)

    def _act(self, user: User) -> None:
        act = self._chance.choice(
            [self._change_username, self._change_email, self._edit, self._other, self._delete]
        )
        act(user)

    def _new_request(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    def _drawn(self, request: str) -> dict[str, str]:
        return {
            "request": request,
            "pk": services.account_key(request),
            "username": shared_value(self._chance),
            "email": shared_address(self._chance),
        }

    def _register(self, asked: dict[str, str]) -> None:
        with self._journal.call("register", **asked) as call:
            try:
                user = services.register(
                    username=asked["username"],
                    email=asked["email"],
                    password_hash=PASSWORD_HASH,
                    request_id=asked["request"],
                )
            except AccountRequestReused:
                call.refused("AccountRequestReused", taken=[])
            except (ValueTaken, Refused) as error:
                refuse(call, error)
            except DynamoError as error:
                call.unanswered(error)
                self._unanswered.append(asked)
            else:
                call.ok(**shown(user))
                self._requests.append(asked["request"])

    def _find(self) -> User | None:
        draw = self._chance.choice([shared_value, shared_address])
        who = draw(self._chance)
        with self._journal.call("find", who=who) as call:
            try:
                user = services.find_user(who)
            except UnknownUser:
                call.refused("UnknownUser")
            except DynamoError as error:
                call.unanswered(error)
            else:
                call.ok(**shown(user))
                return user
        return None

    def _change_username(self, user: User) -> None:
        self._change(user, "username", shared_value(self._chance), services.change_username)

    def _change_email(self, user: User) -> None:
        self._change(user, "email", shared_address(self._chance), services.change_email)

    def _change(self, user: User, attribute: str, new: str, change: Any) -> None:
        old = getattr(user, attribute)
        if new == old:
            return
        asked = {"pk": user.pk, "version": user.version, "attribute": attribute}
        with self._journal.call("change", **asked, old=old, new=new) as call:
            try:
                change(user, new)
            except (AccountError, Refused) as error:
                refuse(call, error)
            except DynamoError as error:
                call.unanswered(error)
            else:
                call.ok(**shown(user))

    def _edit(self, user: User) -> None:
        full_name = f"Person {self._chance.getrandbits(32)}"
        asked = {"pk": user.pk, "version": user.version, "full_name": full_name}
        with self._journal.call("edit", **asked) as call:
            try:
                services.edit_profile(user, full_name=full_name)
            except StaleUser as error:
                refuse(call, error)
            except DynamoError as error:
                call.unanswered(error)
            else:
                call.ok(**shown(user))

    def _other(self, user: User) -> None:
        name = self._chance.choice([*OTHERS])
        asked = {"pk": user.pk, "version": user.version, "operation": name}
        with self._journal.call("other", **asked) as call:
            try:
                OTHERS[name](user)
            except StaleUser as error:
                refuse(call, error)
            except DynamoError as error:
                call.unanswered(error)
            else:
                is_changed = user.version != asked["version"]
                call.ok(**(shown(user) if is_changed else {}))

    def _delete(self, user: User) -> None:
        asked = {"pk": user.pk, "version": user.version}
        asked |= {"username": user.username, "email": user.email}
        with self._journal.call("delete", **asked) as call:
            try:
                services.delete(user)
            except StaleUser as error:
                refuse(call, error)
            except DynamoError as error:
                call.unanswered(error)
            else:
                call.ok()


def shown(user: User) -> dict[str, Any]:
    """The account as the history records it."""
    return {
        "pk": user.pk,
        "username": user.username,
        "email": user.email,
        "version": user.version,
        "full_name": user.full_name or "",
    }


def refuse(call: Running, error: Exception) -> None:
    """Record a refusal: the names of its errors, and the attributes that are taken."""
    errors = error.exceptions if isinstance(error, Refused) else (error,)
    names = "+".join(sorted(type(each).__name__ for each in errors))
    taken = [each.attribute for each in errors if isinstance(each, ValueTaken)]
    gone = any(isinstance(each, StaleUser) and each.deleted for each in errors)
    call.refused(names, taken=taken, gone=gone)
