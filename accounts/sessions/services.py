"""The sessions of an account: who is signed in, where, and the ways in which that ends.

The map `sessions` of the account's item says which of them are alive. Each has a random id of its
own, which Django's session carries: whoever reads the map can use no session. A page reads the
account in any case, and so learns at no further cost whether its session was ended, whichever
process ended it; see `accounts.sessions.middleware`.

Every write is one UpdateItem of single entries under a condition that they themselves make false,
so a write that comes late, or twice, brings nothing back. None raises `version`: no form depends
on them. A session ends two weeks (`SESSION_COOKIE_AGE`) after its sign-in at the latest.

Code that does not read the map, such as `django.contrib.auth.get_user` or a websocket, compares the
session auth hash, which contains the account's `sessionEpoch`. Ending all sessions, or all others,
draws another epoch and so holds there as well. Ending one session does not: there it stays valid
until it expires, or until all are ended.

The map has at most `MOST` entries, and the account's item, usually below 1 KB, is below 16 KB with
them. What a sign-in and every change of an account cost goes by that size: 1 write unit per KB, so
2 for a person with three devices, and 8 where there are 20 of the longest names.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from pynamodb.expressions.condition import Condition, size
from pynamodb.expressions.update import Action

from accounts.exceptions import StaleUser
from accounts.models import User, new_session_epoch
from dynamo.client.retries import pause_seconds
from dynamo.exceptions import ConditionFailed
from dynamo.transactions import Refusal, Transaction, joined

#: A sign-in beyond so many ends the session that was seen longest ago.
MOST = 20

#: How much of what a browser says of itself is kept.
BROWSER_MAX_LENGTH = 200
ADDRESS_MAX_LENGTH = 45  # of an IPv6 address that holds an IPv4 one

#: That a session was seen is written again after so long.
SEEN_EVERY_SECONDS = 5 * 60

#: How often a sign-in is tried against others of the same account at that moment.
ATTEMPTS = 20


@dataclass(frozen=True)
class Session:
    """One sign-in that has not ended. `browser` is what the browser said: anything."""

    id: str
    browser: str
    address: str
    signed_in_at: datetime
    seen_at: datetime
    expires_at: datetime


def alive(user: User) -> list[Session]:
    """The sessions of `user` as it was read, the one that was seen last first. No request."""
    now = datetime.now(UTC)
    living = [session for session in _all(user) if session.expires_at > now]
    return sorted(living, key=lambda session: session.seen_at, reverse=True)


def find(user: User, session_id: str | None) -> Session | None:
    """The session of this id, if it is alive as `user` was read. No request."""
    return next((session for session in alive(user) if session.id == session_id), None)


def _all(user: User) -> Iterator[Session]:
    for session_id, entry in user.sessions_read():
        yield Session(
            session_id,
            str(entry.get("browser", "")),
            str(entry.get("address", "")),
            *(_moment(entry, name) for name in ("signedInAt", "seenAt", "expiresAt")),
        )


def _moment(entry: dict[str, Any], name: str) -> datetime:
    """Where something else was written from outside, it is long ago: the session has lapsed."""
    seconds = entry.get(name)
    return datetime.fromtimestamp(seconds if isinstance(seconds, int) else 0, UTC)


def begin(
    user: User,
    *,
    browser: str = "",
    address: str = "",
    instead_of: str = "",
    write: Transaction | None = None,
) -> str:
    """Record a sign-in and its time, and end the session `instead_of`; the new session's id.

    Costs 1 request; 1 write more for each other sign-in of the account that comes in between. For
    the units see above.

    Raises:
        StaleUser: the account was deleted, deactivated or given another password since `user` was
            read; or others signed in to it each time (from a commit of `write`: once).
    """
    session_id = secrets.token_urlsafe(16)

    def otherwise(refusal: Refusal) -> Exception | None:
        stored = _as_stored(user, refusal)
        if stored is None:
            return StaleUser(user.pk, deleted=True)
        if not user.has({"password": stored.password, "is_active": stored.is_active}):
            return StaleUser(user.pk)
        return None if session_id in dict(stored.sessions_read()) else _Raced(stored)

    for attempt in range(ATTEMPTS):
        now = _later_than(user.last_login)
        entry = _entry(browser, address, now)
        dropped = _dropped(user, instead_of)
        actions, condition = _beginning(user, session_id, entry, dropped)
        actions.append(User.last_login.set(now))
        condition &= _no_later_sign_in(now) & _same_rights(user)
        values = {"sessions": _without(user, *dropped) | {session_id: entry}, "last_login": now}
        try:
            with joined(write) as joint:
                user.join(joint, actions, condition, values, otherwise)
        except _Raced as raced:
            _read_again(user, raced, attempt)
        else:
            return session_id
    raise StaleUser(user.pk)


def note_sign_in_time(user: User, *, write: Transaction | None = None) -> None:
    """Record the time of a sign-in that began no session here, such as one that issued a token.

    Costs 1 request and 1 write unit per KB.

    Raises:
        StaleUser: the account was deleted since `user` was read.
    """
    now = _later_than(user.last_login)

    def otherwise(refusal: Refusal) -> Exception | None:
        # If it was not deleted, a later sign-in is recorded already.
        deleted = _as_stored(user, refusal) is None
        return StaleUser(user.pk, deleted=True) if deleted else None

    condition = user.same_account() & _no_later_sign_in(now)
    with joined(write) as write:
        user.join(write, [User.last_login.set(now)], condition, {"last_login": now}, otherwise)


def _no_later_sign_in(than: datetime) -> Condition:
    earlier: Condition = User.last_login.does_not_exist() | (User.last_login < than)
    return earlier


def _later_than(last: datetime | None) -> datetime:
    """Now; or just after the sign-in before, which a clock that is ahead has noted."""
    now = datetime.now(UTC)
    return now if last is None else max(now, last + timedelta(microseconds=1))


def _entry(browser: str, address: str, now: datetime) -> dict[str, Any]:
    seconds = int(now.timestamp())
    return {
        "browser": _plain(browser)[:BROWSER_MAX_LENGTH],
        "address": _plain(address)[:ADDRESS_MAX_LENGTH],
        "signedInAt": seconds,
        "seenAt": seconds,
        "expiresAt": seconds + settings.SESSION_COOKIE_AGE,
    }


def _plain(text: str) -> str:
    return "".join(sign for sign in text if sign.isascii() and sign.isprintable())


def _beginning(
    user: User, session_id: str, entry: dict[str, Any], dropped: list[str]
) -> tuple[list[Action], Condition]:
    """What adds `entry` to the map as it was read, and removes the sessions `dropped`."""
    if user.sessions is None:
        return [User.sessions.set({session_id: entry})], User.sessions.does_not_exist()
    actions: list[Action] = [User.sessions[session_id].set(entry)]
    condition: Condition = size(User.sessions) < MOST + len(dropped)  # type: ignore[no-untyped-call]  # PynamoDB's
    for each in dropped:
        actions.append(User.sessions[each].remove())
        condition &= User.sessions[each].exists()
    return actions, condition


def _without(user: User, *ended: str) -> dict[str, Any]:
    """The sessions as they were read, without those that are `ended`."""
    return {each: entry for each, entry in user.sessions_read() if each not in ended}


def _dropped(user: User, instead_of: str) -> list[str]:
    """The lapsed, the one that is replaced, and of the others those beyond the limit."""
    kept = [session.id for session in alive(user) if session.id != instead_of][: MOST - 1]
    return [session_id for session_id, _entry in user.sessions_read() if session_id not in kept]


def _same_rights(user: User) -> Condition:
    """The condition that who could sign in when `user` was read still can."""
    active = (User.is_active == user.is_active) | User.is_active.does_not_exist()
    same: Condition = (User.password == user.password) & active & user.same_account()
    return same


class _Raced(StaleUser):
    """Others wrote the sessions of the account since it was read; `stored` is the account now."""

    def __init__(self, stored: User) -> None:
        super().__init__(stored.pk)
        self.stored = stored


def _read_again(user: User, raced: _Raced, attempt: int) -> None:
    """Take over the account as it is now, and wait a little before the next attempt."""
    user.deserialize(raced.stored.stored)
    time.sleep(pause_seconds(attempt))


def _as_stored(user: User, refusal: Refusal) -> User | None:
    """The account as it is stored after a refusal; None if `user` was deleted."""
    if refusal.stored is None or not user.is_same_account(refusal.stored):
        return None
    return User.from_raw_data(refusal.stored)


def seen(user: User, session: Session, *, address: str) -> None:
    """Note that `session` was used just now, and from where; nothing where that was noted lately.

    Costs 1 request and 1 write unit per KB every five minutes. Where the session was ended, or
    another page was faster, nothing is written.
    """
    now = datetime.now(UTC)
    if (now - session.seen_at).total_seconds() < SEEN_EVERY_SECONDS:
        return
    entry = User.sessions[session.id]
    seconds = int(now.timestamp())
    actions = [
        entry["seenAt"].set(seconds),
        entry["address"].set(_plain(address)[:ADDRESS_MAX_LENGTH]),
    ]
    try:
        user.update(actions, entry["seenAt"] <= seconds - SEEN_EVERY_SECONDS)
    except ConditionFailed:
        return


def end(user: User, session_id: str, *, write: Transaction | None = None) -> None:
    """End one session of `user`. A session that has ended, or never was, is a success.

    Costs 1 request and 1 write unit per KB; nothing if it had ended when `user` was read.

    Raises:
        StaleUser: the session that `user` was read for was itself ended meanwhile.
    """
    left = _without(user, session_id)
    if len(left) == len(user.sessions_read()):
        return
    ending = User.sessions[session_id]
    otherwise = partial(_unless_signed_out, user, session_id)
    with joined(write) as write:
        condition = ending.exists() & user.signed_in()
        user.join(write, [ending.remove()], condition, {"sessions": left}, otherwise)


def end_all(user: User, *, write: Transaction | None = None) -> None:
    """End every session of `user`, also those that began since it was read.

    The account gets another session epoch. So the sessions have ended as well for code that does
    not read the map, such as `django.contrib.auth.get_user`.

    If nobody signed in since all sessions were ended, or the account is gone, it is a success.
    Costs 1 request and 1 write unit per KB, 1 write more for each other call that ended sessions
    since `user` was read.

    Raises:
        StaleUser: others ended sessions, and somebody signed in again, each time (from a commit of
            `write`: once).
    """
    written = {"sessions": None, "session_epoch": new_session_epoch()}

    def otherwise(refusal: Refusal) -> Exception | None:
        stored = _as_stored(user, refusal)
        if stored is None or stored.sessions is None:
            return None
        return None if stored.session_epoch == written["session_epoch"] else _Raced(stored)

    for attempt in range(ATTEMPTS):
        # Ending sessions one by one leaves an empty map: others may still see those.
        condition = User.sessions.exists() & _same_epoch(user) & user.same_account()
        try:
            with joined(write) as joint:
                user.join(joint, user.set_or_remove(written), condition, written, otherwise)
        except _Raced as raced:
            _read_again(user, raced, attempt)
        else:
            return
    raise StaleUser(user.pk)


def end_others(user: User, *, write: Transaction | None = None) -> None:
    """End all sessions of `user` but the one that it was read for, also where the map is not read.

    So it also ends those that began since `user` was read, and those that were ended one by one
    before, which code that does not read the map still takes for valid. The account gets another
    session epoch, so the one that is kept needs the new hash (`accounts.sessions.visitor.keep`).
    Costs as `end_all`.

    Raises:
        StaleUser: that one was itself ended meanwhile; the others are as they were. Or others ended
            sessions, and somebody signed in again, each time (from a commit of `write`: once).
    """
    epoch = new_session_epoch()

    def otherwise(refusal: Refusal) -> Exception | None:
        if ended := _unless_signed_out(user, "", refusal):
            return ended
        stored = _as_stored(user, refusal)
        return None if stored is None or stored.session_epoch == epoch else _Raced(stored)

    for attempt in range(ATTEMPTS):
        kept = {each: entry for each, entry in user.sessions_read() if each == user.session_id}
        values = {"sessions": kept, "session_epoch": epoch}
        try:
            with joined(write) as joint:
                condition = user.signed_in() & _same_epoch(user)
                user.join(joint, user.set_or_remove(values), condition, values, otherwise)
        except _Raced as raced:
            _read_again(user, raced, attempt)
        else:
            return
    raise StaleUser(user.pk)


def _unless_signed_out(user: User, ended: str, refusal: Refusal) -> Exception | None:
    """The error if the session of `user`, unless it is `ended`, was ended by another request."""
    stored = _as_stored(user, refusal)
    alive_here = stored is not None and user.session_id in dict(stored.sessions_read())
    if user.session_id in {None, ended} or alive_here:
        return None
    return StaleUser(user.pk, deleted=stored is None)


def _same_epoch(user: User) -> Condition:
    """The condition that the sessions were not ended since `user` was read.

    Each epoch is another, so a write that arrives late is refused, and brings no old one back.
    """
    if not user.session_epoch:
        absent: Condition = User.session_epoch.does_not_exist()
        return absent
    same: Condition = User.session_epoch == user.session_epoch
    return same
