"""Clients that register, find, change and delete accounts with few shared values."""

import random
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from accounts import services
from accounts.exceptions import AccountRequestReused, StaleUser, UnknownUser, ValueTaken
from accounts.models import User
from dynamo import Refused
from tests.account_operations import ACCOUNTS
from tests.items import Item
from tests.torture.clients.client import Client

#: All clients use the same few values, and new ones after so many seconds: so the history of a
#: value stays short enough to be checked.
ERA_SECONDS = 20.0
VALUES = 6

PASSWORD_HASH = "!of-the-torture"

#: Operations that change neither what a search shows nor what a repeated registration compares.
OTHERS = {
    account.name: account.act
    for account in ACCOUNTS
    if account.name
    in {
        *("activate", "cancel_change", "deactivate", "mark_confirmed", "record_sign_in"),
        *("request_change", "sessions.begin", "sessions.end_all"),
    }
}

#: How many request ids, and how many copies of accounts, a client keeps for later.
KEPT = 8


def shared_value(attribute: str, chance: random.Random) -> str:
    """A username or email address that other clients use too, in one of its spellings."""
    name = f"n{int(time.monotonic() / ERA_SECONDS)}-{chance.randrange(VALUES)}"
    name = name.upper() if chance.random() < 0.2 else name
    return f"{name}@example.org" if attribute == "email" else name


@dataclass
class AccountClient(Client):
    """A client. It repeats sign-ups that had no answer.

    It also uses request ids again with other values: if their account was deleted, that makes
    another one with the same key. And it acts on old copies of accounts.
    """

    _unanswered: list[dict[str, str]] = field(default_factory=list)
    _requests: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    _copies: deque[Item] = field(default_factory=lambda: deque(maxlen=KEPT))

    def step(self) -> None:
        """Make one or two calls."""
        what = self.chance.random()
        if self._unanswered and what < 0.5:
            self._register(self._unanswered.pop())
        elif what < 0.4:
            self._register(self._drawn(self.new_id()))
        elif self._requests and what < 0.55:
            self._register(self._drawn(self.chance.choice(self._requests)))
        elif self._copies and what < 0.65:
            self._act(User.from_raw_data(self.chance.choice(self._copies)))
        elif user := self._find():
            self._copies.append(user.stored)
            self._act(user)

    def _drawn(self, request: str) -> dict[str, str]:
        values = {name: shared_value(name, self.chance) for name in ("username", "email")}
        return {"request": request, "pk": User.key_for(request), **values}

    def _register(self, asked: dict[str, str]) -> None:
        refusals = (AccountRequestReused, ValueTaken, Refused)
        with self.journal.call("register", refusals=refusals, **asked) as call:
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
        who, user = shared_value(self.chance.choice(["username", "email"]), self.chance), None
        with self.journal.call("find", refusals=(UnknownUser,), who=who) as call:
            user = services.find_user(who)
            call.ok(**shown(user))
        return user

    def _act(self, user: User) -> None:
        """Change the account as it was read, or delete it."""
        what = self.chance.choice(["username", "email", "edit", "other", "delete"])
        values = {"username": user.username, "email": user.email}
        refusals: tuple[type[Exception], ...] = (StaleUser,)
        do, asked, act = "delete", values, partial(services.delete, user)
        if what in values:
            old = values[what]
            new = shared_value(what, self.chance)
            if new == old:
                return
            refusals = (StaleUser, ValueTaken, Refused)
            do, asked = "change", {"attribute": what, "old": old, "new": new}
            act = partial(getattr(services, f"change_{what}"), user, new)
        elif what == "edit":
            do, asked = what, {"full_name": f"Person {self.chance.getrandbits(32)}"}
            act = partial(services.edit_profile, user, **asked)
        elif what == "other":
            do, asked = what, {"operation": self.chance.choice([*OTHERS])}
            act = partial(OTHERS[asked["operation"]], user)
        read = {"pk": user.pk, "version": user.version}
        with self.journal.call(do, refusals=refusals, **read, **asked) as call:
            act()
            # Others may have had nothing to do, and sent no request.
            is_told = do in {"change", "edit"} or user.version != read["version"]
            call.ok(**(shown(user) if is_told and do != "delete" else {}))


def shown(user: User) -> dict[str, Any]:
    """The account as the history records it."""
    names = ("pk", "username", "email", "version")
    return {**{name: getattr(user, name) for name in names}, "full_name": user.full_name or ""}
