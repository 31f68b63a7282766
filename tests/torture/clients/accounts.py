"""Clients that register, find, change and delete accounts with few shared values."""

from __future__ import annotations

import random
import time
import uuid
from collections import deque
from contextlib import AbstractContextManager
from typing import Any

from accounts import services
from accounts.exceptions import AccountRequestReused, StaleUser, UnknownUser, ValueTaken
from accounts.models import User
from dynamo._internal.items import Item
from dynamo.exceptions import Refused
from tests.site_operations import ACCOUNTS
from tests.torture.history import Journal, Running

#: All clients use the same few values, and new ones after so many seconds: so the history of a
#: value stays short enough to be checked.
ERA_SECONDS = 20.0
VALUES = 6

PASSWORD_HASH = "!of-the-torture"

#: Operations that change neither what a search shows nor what a repeated registration compares.
OTHERS = {
    each.name: each.act
    for each in ACCOUNTS
    if each.name
    in {
        *("activate", "cancel_change", "deactivate", "mark_confirmed", "record_sign_in"),
        *("request_change", "sessions.begin", "sessions.end_all"),
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
        refusals = (AccountRequestReused, ValueTaken, Refused)
        with self._journal.call("register", refusals=refusals, **asked) as call:
            user = services.register(
                username=asked["username"],
                email=asked["email"],
                password_hash=PASSWORD_HASH,
                request_id=asked["request"],
            )
            call.ok(**shown(user))
        if call.outcome == "ok":
            self._requests.append(asked["request"])
        elif call.outcome == "unknown":
            self._unanswered.append(asked)

    def _find(self) -> User | None:
        draw = self._chance.choice([shared_value, shared_address])
        who, user = draw(self._chance), None
        with self._journal.call("find", refusals=(UnknownUser,), who=who) as call:
            user = services.find_user(who)
            call.ok(**shown(user))
        return user

    def _change_username(self, user: User) -> None:
        self._change(user, "username", shared_value(self._chance), services.change_username)

    def _change_email(self, user: User) -> None:
        self._change(user, "email", shared_address(self._chance), services.change_email)

    def _change(self, user: User, attribute: str, new: str, change: Any) -> None:
        old = getattr(user, attribute)
        if new != old:
            asked = {"attribute": attribute, "old": old, "new": new}
            with self._acting("change", user, StaleUser, ValueTaken, Refused, **asked) as call:
                change(user, new)
                call.ok(**shown(user))

    def _edit(self, user: User) -> None:
        full_name = f"Person {self._chance.getrandbits(32)}"
        with self._acting("edit", user, StaleUser, full_name=full_name) as call:
            services.edit_profile(user, full_name=full_name)
            call.ok(**shown(user))

    def _other(self, user: User) -> None:
        read, name = user.version, self._chance.choice([*OTHERS])
        with self._acting("other", user, StaleUser, operation=name) as call:
            OTHERS[name](user)
            call.ok(**(shown(user) if user.version != read else {}))

    def _delete(self, user: User) -> None:
        values = {"username": user.username, "email": user.email}
        with self._acting("delete", user, StaleUser, **values) as call:
            services.delete(user)
            call.ok()

    def _acting(
        self, do: str, user: User, *refusals: type[Exception], **asked: Any
    ) -> AbstractContextManager[Running]:
        named = {"pk": user.pk, "version": user.version}
        return self._journal.call(do, refusals=refusals, **named, **asked)


def shown(user: User) -> dict[str, Any]:
    """The account as the history records it."""
    return {
        "pk": user.pk,
        "username": user.username,
        "email": user.email,
        "version": user.version,
        "full_name": user.full_name or "",
    }
