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

from dataclasses import dataclass

from accounts.models import User
from dynamo import AlreadyDone, Refused, Transaction
from dynamo.admin.models import record as add_entries
from staff.exceptions import NotStaff


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


def record(actor: Actor, action: str, *, on: User, what: str = "", reason: str = "") -> None:
    """Write the entries of an action that changes nothing stored, before it is carried out.

    Costs 1 request and 6 write units (1 KB of the actor's account).

    Raises:
        NotStaff: the actor no longer has the rights; nothing was written.
    """
    write = Transaction()
    _add_entries(write, actor, action, reason=reason, on=on, what=what)
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
    add_entries(
        write,
        action,
        by=actor.user.pk,
        by_name=actor.user.username,
        on=on,
        on_name=(on.username if on else None) or "",
        what=what,
        address=actor.address,
        reason=reason,
    )


def _require_rights(write: Transaction, actor: Actor, *, superuser: bool) -> None:
    user = actor.user
    active = (User.is_active == True) | User.is_active.does_not_exist()  # noqa: E712 - a condition
    may = (User.is_staff == True) & active & user.signed_in()  # noqa: E712 - likewise
    if superuser:
        may &= User.is_superuser == True  # noqa: E712 - likewise
    write.check(User(user.pk), may, otherwise=NotStaff(user.pk))
