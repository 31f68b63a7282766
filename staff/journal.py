"""The record of what staff did: entries join the action's own transaction, and lists are Queries.

So there is no action without its entry, and no entry of what did not happen. The transaction
demands as well that who acts is staff, active and signed in at that instant, whatever the page
read before, and a superuser if the account acted on is staff: of two superusers who deactivate
each other at once, one is too late.

Looking is not recorded: it changes nothing, and what is looked at would bury what was done. The
server's log has who asked for which page.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from accounts.exceptions import AccountError
from accounts.models import User
from dynamo.client import send
from dynamo.exceptions import Refused
from dynamo.transaction import Companion, Transaction
from locks.exceptions import LockError
from staff.exceptions import AlreadyRecorded, NotStaff, StaffError
from staff.models import StaffAction

PAGE_SIZE = 50

#: Of what is kept beside an action: a lock's name may have 2,048 bytes.
WHAT_MAX_LENGTH = 300


@dataclass(frozen=True)
class Actor:
    """Who acts: the account as its page read it, and the address that the request came from."""

    user: User
    address: str = ""


def needs_superuser(user: User) -> bool:
    """Whether only a superuser may act on `user`."""
    return bool(user.is_staff or user.is_superuser)


class Entry:
    """What is to be recorded of one action, once, however often its transaction is tried."""

    def __init__(
        self, actor: Actor, action: str, *, reason: str = "", on: User | None = None, what: str = ""
    ) -> None:
        now = datetime.now(UTC)
        self.actor = actor.user
        shown: dict[str, Any] = {
            "action": action,
            "by": actor.user.pk,
            "by_name": actor.user.username,
            "on": on.pk if on else None,
            "on_name": on.username if on else None,
            "what": what[:WHAT_MAX_LENGTH] or None,
            "address": actor.address or None,
            "reason": reason or None,
        }
        self.id = f"{now.isoformat(timespec='microseconds')}#{uuid.uuid4()}"
        journals = [month_of(now), *([on_account(on.pk)] if on else [])]
        self._items = [StaffAction(journal, self.id, **shown) for journal in journals]
        self._superuser_only = on is not None and needs_superuser(on)
        self._write: Transaction | None = None

    def join(self, write: Transaction) -> None:
        """Let `write` record the action, if who acts still may. 2 write units each, 3 at most."""
        self._write = write
        for item in self._items:
            absent = StaffAction.journal.does_not_exist()
            write.put(item, absent, otherwise=AlreadyRecorded(self.id))
        actor = self.actor
        active = (User.is_active == True) | User.is_active.does_not_exist()  # noqa: E712 - a condition
        may = (User.is_staff == True) & active & actor.signed_in()  # noqa: E712 - likewise
        if self._superuser_only:
            may &= User.is_superuser == True  # noqa: E712 - likewise
        write.check(User(actor.pk), may, otherwise=NotStaff(actor.pk))

    @property
    def is_made(self) -> bool:
        """Whether the transaction that it joined last was committed, now or by a lost reply."""
        if self._write is None:
            return False
        refused = [refusal.about for refusal in self._write.refusals]
        return not refused or any(about is item for about in refused for item in self._items)


def recorded(entry: Entry, operation: Callable[[Companion], object]) -> bool:
    """Do `operation` along with `entry`; whether it was done, rather than was so already.

    Raises:
        NotStaff: who acts no longer may; nothing was written.
        what `operation` raises, where it was not done.
    """
    try:
        operation(entry.join)
    except (AccountError, LockError, StaffError, Refused) as error:
        if entry.is_made:
            return True
        if isinstance(error, Refused) and error.subgroup(NotStaff):
            raise NotStaff(entry.actor.pk) from error
        raise
    return entry.is_made


def month_of(at: datetime) -> str:
    """The journal of the month of `at`, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m")


def on_account(pk: str) -> str:
    """The journal of what was done to an account."""
    return f"on#{pk}"


@dataclass(frozen=True)
class Page:
    """Some actions, newest first; `before` is where the next page begins, None at the end."""

    actions: list[StaffAction]
    before: str | None


def list_actions(journal: str, *, before: str | None = None, limit: int = PAGE_SIZE) -> Page:
    """A page of a journal, from below the id `before`. Costs 1 request, 1 read unit per 4 KB."""
    condition, values = "journal = :journal", {":journal": {"S": journal}}
    if before:
        condition, values = f"{condition} AND id < :before", values | {":before": {"S": before}}
    request: dict[str, Any] = {
        "TableName": StaffAction.table(),
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ScanIndexForward": False,
        "Limit": limit + 1,
    }
    items = send("Query", request)["Items"]
    actions = [StaffAction.from_raw_data(item) for item in items[:limit]]
    return Page(actions, actions[-1].id if len(items) > limit else None)
