"""The audit log: an action of staff and its entries are one transaction.

So there is no action without its entries, and no entry of an action that did not happen. The
transaction also requires that the actor is staff, active and signed in at that instant, whatever
the page read before, and a superuser if the account acted on is staff: if two superusers deactivate
each other at once, the later transaction is rejected.

Reading is not logged, because it changes nothing and its entries would hide those of the changes.
The server's log has who requested which page. The exception is an account's invoices, which are
private business data: the entry is written before they are shown.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from accounts.models import User
from dynamo import AlreadyDone, Refused, Transaction
from dynamo.extending import Refusal, send
from staff.exceptions import NotStaff
from staff.models import StaffAction

PAGE_SIZE = 50

#: Of the text about an action: a lock's name may have 2,048 bytes.
WHAT_MAX_LENGTH = 300


@dataclass(frozen=True)
class Actor:
    """Who acts: the account as its page read it, and the address that the request came from."""

    user: User
    address: str = ""


def needs_superuser(user: User) -> bool:
    """Whether only a superuser may act on `user`."""
    return bool(user.is_staff or user.is_superuser)


def commit(
    write: Transaction,
    actor: Actor,
    action: str,
    *,
    reason: str = "",
    on: User | None = None,
    what: str = "",
) -> bool:
    """Commit the action in `write` together with its entries. False if there was nothing to do.

    Then nothing is logged. The entries are at most 2 items; with the check of the actor they cost
    2 write units each.

    Raises:
        NotStaff: the actor no longer has the rights; nothing was written.
        what `Transaction.commit` raises.
    """
    if not write:
        return False
    _add_entries(write, actor, action, reason=reason, on=on, what=what)
    _require_rights(write, actor, superuser=on is not None and needs_superuser(on))
    try:
        _commit(write, actor)
    except AlreadyDone:
        return False
    return True


def record(actor: Actor, action: str, *, on: User, what: str) -> None:
    """Write the entries of an action that changes nothing, before it is carried out.

    Costs 1 request and 6 write units (1 KB of the actor's account).

    Raises:
        NotStaff: the actor no longer has the rights; nothing was written.
    """
    write = Transaction()
    _add_entries(write, actor, action, reason="", on=on, what=what)
    _require_rights(write, actor, superuser=False)
    _commit(write, actor)


def _commit(write: Transaction, actor: Actor) -> None:
    try:
        write.commit()
    except Refused as error:
        if error.subgroup(NotStaff):
            raise NotStaff(actor.user.pk) from error
        raise


def _add_entries(
    write: Transaction, actor: Actor, action: str, *, reason: str, on: User | None, what: str
) -> None:
    now = datetime.now(UTC)
    entry_id = f"{now.isoformat(timespec='microseconds')}#{uuid.uuid4()}"
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
    for journal in [month_of(now), *([on_account(on.pk)] if on else [])]:
        item = StaffAction(journal, entry_id, **shown)
        write.put(item, StaffAction.journal.does_not_exist(), otherwise=_stored_before)


def _stored_before(_refusal: Refusal) -> None:
    """The id is random, so a stored entry that has it is this one: its reply was lost."""


def _require_rights(write: Transaction, actor: Actor, *, superuser: bool) -> None:
    user = actor.user
    active = (User.is_active == True) | User.is_active.does_not_exist()  # noqa: E712 - a condition
    may = (User.is_staff == True) & active & user.signed_in()  # noqa: E712 - likewise
    if superuser:
        may &= User.is_superuser == True  # noqa: E712 - likewise
    write.check(User(user.pk), may, otherwise=NotStaff(user.pk))


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
