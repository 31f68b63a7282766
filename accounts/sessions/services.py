"""The sessions of an account: where its user is signed in, and the operations that end sessions.

The account's item has the map `sessions` of the sessions that have not ended. Django's session has
the random id of its entry. The id is not the session's key, so the map does not help to take over a
session. A page reads the account anyway. Therefore, it knows without another request whether its
session has ended (`accounts.sessions.middleware`). A session ends two weeks (`SESSION_COOKIE_AGE`)
after its sign-in at the latest.

Every write is one UpdateItem of single entries, under a condition that is false after the write.
Therefore, a late or repeated write brings no session back. The writes do not increase `version`,
because no form depends on the sessions.

Code that does not read the map, such as `django.contrib.auth.get_user` or a websocket, compares the
session auth hash, which contains the account's `sessionEpoch`. `end_all` and `end_others` draw a
new epoch, so the sessions end for that code too. After `end`, a session is still valid there until
it expires or until all sessions are ended.

The map has at most `MOST` entries. With them the account's item, usually below 1 KB, is below
16 KB. Sign-ins and changes of an account cost 1 write unit per KB of it: 2 for a user with three
devices, 8 with 20 of the longest names.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.conf import settings
from pynamodb.expressions.condition import Condition, size
from pynamodb.expressions.update import Action

from accounts.exceptions import StaleUser
from accounts.models import AbstractAccount, account_model
from dynamo import Transaction, joined
from dynamo.auth.base_user import new_session_epoch
from dynamo.client.retries import pause_seconds
from dynamo.client.writes import Otherwise, Refusal

#: The most sessions of an account. A further sign-in ends the session that was seen longest ago.
MOST = 20

BROWSER_MAX_LENGTH = 200
ADDRESS_MAX_LENGTH = 45  # of an IPv6 address that contains an IPv4 one

#: A session is marked as seen again only after this time.
SEEN_EVERY_SECONDS = 5 * 60

#: A write is attempted this many times while other requests change the sessions of the account.
ATTEMPTS = 20


@dataclass(frozen=True)
class Session:
    """One sign-in that has not ended. `browser` is the unchecked User-Agent header."""

    id: str
    browser: str
    address: str
    signed_in_at: datetime
    seen_at: datetime
    expires_at: datetime


def active_sessions(user: AbstractAccount) -> list[Session]:
    """The sessions of `user` as it was read, last seen first. Sends no request."""
    now = datetime.now(UTC)
    sessions = [_session(session_id, entry) for session_id, entry in user.sessions_read().items()]
    living = [session for session in sessions if session.expires_at > now]
    return sorted(living, key=lambda session: session.seen_at, reverse=True)


def find(user: AbstractAccount, session_id: str | None) -> Session | None:
    """The session with this id, if it is alive in `user` as it was read. Sends no request."""
    entry = user.sessions_read().get(session_id or "")
    session = None if entry is None else _session(str(session_id), entry)
    return session if session and session.expires_at > datetime.now(UTC) else None


def _session(session_id: str, entry: dict[str, object]) -> Session:
    def moment(name: str) -> datetime:
        # A damaged time is read as 1970, so the session has ended.
        seconds = entry.get(name)
        return datetime.fromtimestamp(seconds if isinstance(seconds, int) else 0, UTC)

    return Session(
        session_id,
        browser=str(entry.get("browser", "")),
        address=str(entry.get("address", "")),
        signed_in_at=moment("signedInAt"),
        seen_at=moment("seenAt"),
        expires_at=moment("expiresAt"),
    )


def first_session(*, browser: str, address: str) -> dict[str, Any]:
    """The attributes of a new account that contain its first session. Sends no request."""
    now = datetime.now(UTC)
    entry = _entry(browser, address, now)
    return {"sessions": {secrets.token_urlsafe(16): entry}, "last_login": now}


def begin(
    user: AbstractAccount,
    *,
    browser: str = "",
    address: str = "",
    instead_of: str = "",
    also: Transaction | None = None,
    write: Transaction | None = None,
) -> str:
    """Record a sign-in and its time, end the session `instead_of`, and return the new session's id.

    The writes of `also` are part of the same transaction, at each attempt. Costs 1 request, and 1
    more for each other sign-in to the account at the same time.

    Raises:
        StaleUser: the account was deleted, deactivated or given another password since `user` was
            read; or others signed in to it at each attempt (only one if `write` is given).
    """
    session_id = secrets.token_urlsafe(16)

    def otherwise(refusal: Refusal) -> Exception | None:
        stored = _as_stored(user, refusal)
        if stored is None:
            return StaleUser(user.pk, deleted=True)
        if (stored.password, stored.is_active) != (user.password, user.is_active):
            return StaleUser(user.pk)
        return None if session_id in stored.sessions_read() else _Raced(stored)

    def planned() -> _Update:
        now = user.later_sign_in()
        entry = _entry(browser, address, now)
        kept = [session.id for session in active_sessions(user) if session.id != instead_of][
            : MOST - 1
        ]
        dropped = [item for item in user.sessions_read() if item not in kept]
        values = {"sessions": _without(user, *dropped) | {session_id: entry}, "last_login": now}
        actions: list[Action] = [account_model().last_login.set(now)]
        condition = user.no_later_sign_in(now) & _same_rights(user)
        if user.sessions is None:
            actions.append(account_model().sessions.set({session_id: entry}))
            return actions, condition & account_model().sessions.does_not_exist(), values
        actions.append(account_model().sessions[session_id].set(entry))
        condition &= size(account_model().sessions) < MOST + len(dropped)
        for element in dropped:
            actions.append(account_model().sessions[element].remove())
            condition &= account_model().sessions[element].exists()
        return actions, condition, values

    _repeat(user, planned, otherwise, write, also)
    return session_id


def mark_seen(
    user: AbstractAccount, session: Session, *, address: str, write: Transaction | None = None
) -> None:
    """Record that `session` was used now, and from where, unless that was recorded recently.

    If the session has ended or another page recorded it first, nothing is written, and `user` does
    not change (with `write`: see `Transaction`). Costs 1 request and 1 write unit per KB every five
    minutes.
    """
    now = datetime.now(UTC)
    entries = user.sessions_read()
    is_recent = (now - session.seen_at).total_seconds() < SEEN_EVERY_SECONDS
    if is_recent or session.id not in entries:
        return
    entry = account_model().sessions[session.id]
    seconds = int(now.timestamp())
    place = _plain(address)[:ADDRESS_MAX_LENGTH]
    entries[session.id] = entries[session.id] | {"seenAt": seconds, "address": place}
    refused = StaleUser(user.pk) if write is None else None
    with suppress(StaleUser):
        user.join(
            write,
            [entry["seenAt"].set(seconds), entry["address"].set(place)],
            entry["seenAt"] <= seconds - SEEN_EVERY_SECONDS,
            {"sessions": entries},
            otherwise=lambda _refusal: refused,
        )


def end(user: AbstractAccount, session_id: str, *, write: Transaction | None = None) -> None:
    """End one session of `user`. Also succeeds if it had ended or never existed.

    Costs 1 request and 1 write unit per KB; nothing if it had ended when `user` was read.

    Raises:
        StaleUser: the visitor's own session was ended meanwhile.
    """
    left = _without(user, session_id)
    if len(left) == len(user.sessions_read()):
        return

    ending = account_model().sessions[session_id]
    otherwise = partial(_unless_signed_out, user, session_id)
    condition = ending.exists() & user.signed_in()
    user.join(write, [ending.remove()], condition, {"sessions": left}, otherwise)


def end_all(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """End every session of `user`, also those that began after it was read.

    Also succeeds if no session began since all were ended, or if the account is deleted. Costs 1
    request and 1 write unit per KB, and 1 write more for each other call that ended sessions since
    `user` was read.

    Raises:
        StaleUser: others ended sessions and signed in again at each attempt (only one if `write`
            is given).
    """
    _end_all_but(user, None, write)


def end_others(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """End all sessions of `user` except the visitor's, also for code that does not read the map.

    Sessions that began after `user` was read are ended as well. The visitor's Django session needs
    the new session auth hash (`accounts.sessions.visitor.keep_signed_in`). The costs are those of
    `end_all`.

    Raises:
        StaleUser: the visitor's own session was ended meanwhile. The others are not ended.
        StaleUser: as in `end_all`.
    """
    _end_all_but(user, user.session_id, write)


def _end_all_but(user: AbstractAccount, kept: str | None, write: Transaction | None) -> None:
    """End every session of `user` except the visitor's, `kept`, if that is still active."""
    epoch = new_session_epoch()

    def otherwise(refusal: Refusal) -> Exception | None:
        if kept and (signed_out := _unless_signed_out(user, None, refusal)):
            return signed_out
        stored = _as_stored(user, refusal)
        if stored is None or stored.session_epoch == epoch or stored.sessions is None:
            return None
        return _Raced(stored)

    def planned() -> _Update:
        left = {key: entry for key, entry in user.sessions_read().items() if key == kept}
        values: dict[str, object] = {"sessions": left or None, "session_epoch": epoch}
        # `end` can leave an empty map, while other code still accepts the ended sessions.
        is_here = (
            user.signed_in() if kept else account_model().sessions.exists() & user.same_account()
        )
        # No epoch is used twice, so a late write is refused and brings no old epoch back.
        same_epoch = account_model().session_epoch == user.session_epoch
        return user.set_or_remove(values), is_here & same_epoch, values

    _repeat(user, planned, otherwise, write)


#: An update of the account: actions, condition, and the values that it sets; see `User.join`.
_Update = tuple[list[Action], Condition, dict[str, object]]


class _Raced(StaleUser):
    """Another process has changed the sessions of the account; `stored` is the account now."""

    def __init__(self, stored: AbstractAccount) -> None:
        super().__init__(stored.pk)
        self.stored = stored


def _repeat(
    user: AbstractAccount,
    planned: Callable[[], _Update],
    otherwise: Otherwise,
    write: Transaction | None,
    also: Transaction | None = None,
) -> None:
    """Update the account; after `_Raced`, plan again with the account as it is now."""
    for attempt in range(ATTEMPTS):
        try:
            with joined(write) as together:
                user.join(together, *planned(), otherwise)
                if also is not None:
                    together.add(*also)
                    together.on_commit(user, lambda _stored: also.tell_committed())
        except _Raced as raced:
            user.deserialize(raced.stored.stored)
            time.sleep(pause_seconds(attempt))
        else:
            return
    raise StaleUser(user.pk)


def _as_stored(user: AbstractAccount, refusal: Refusal) -> AbstractAccount | None:
    """The stored account after a refusal; None if `user` was deleted."""
    if refusal.stored is None or not user.is_same_item(refusal.stored):
        return None
    return account_model().from_raw_data(refusal.stored)


def _unless_signed_out(
    user: AbstractAccount, ended: str | None, refusal: Refusal
) -> Exception | None:
    """The error if another request ended the visitor's session, unless that is `ended`."""
    stored = _as_stored(user, refusal)
    alive_here = stored is not None and user.session_id in stored.sessions_read()
    if user.session_id in {None, ended} or alive_here:
        return None
    return StaleUser(user.pk, deleted=stored is None)


def place(browser: str, address: str) -> dict[str, str]:
    """The browser and the address of a session, as stored."""
    return {
        "browser": _plain(browser)[:BROWSER_MAX_LENGTH],
        "address": _plain(address)[:ADDRESS_MAX_LENGTH],
    }


def _entry(browser: str, address: str, now: datetime) -> dict[str, object]:
    seconds = int(now.timestamp())
    return {
        **place(browser, address),
        "signedInAt": seconds,
        "seenAt": seconds,
        "expiresAt": seconds + settings.SESSION_COOKIE_AGE,
    }


def _plain(text: str) -> str:
    return "".join(char for char in text if char.isascii() and char.isprintable())


def _without(user: AbstractAccount, *ended: str) -> dict[str, object]:
    """The sessions as they were read, without those that are `ended`."""
    return {key: entry for key, entry in user.sessions_read().items() if key not in ended}


def _same_rights(user: AbstractAccount) -> Condition:
    """The condition that the user can still sign in with the password that was checked."""
    active = (
        account_model().is_active == user.is_active
    ) | account_model().is_active.does_not_exist()
    return (account_model().password == user.password) & active & user.same_account()
