"""What staff may do to others' accounts and to locks: each one transaction with its entry.

Nothing here gives rights, and nobody acts on the own account: for that the account has its pages.
Only a superuser acts on the account of another member of staff.
"""

from __future__ import annotations

from django.utils.translation import override

from accounts import services, sessions
from accounts.browsers import readable
from accounts.models import User
from locks.registry import LockView, break_lock
from staff.exceptions import NotSuperuser, OwnAccount
from staff.journal import Actor, Entry, needs_superuser, recorded


def deactivate(actor: Actor, user: User, reason: str) -> bool:
    """Keep `user` out and end its sessions; whether it was done, rather than was so already.

    Costs 1 request and 8 write units (1 KB of account); nothing where it was so already.

    Raises:
        OwnAccount: one does not deactivate oneself.
        NotSuperuser: `user` is staff as it was read, and `actor` is not a superuser.
        NotStaff: `actor` no longer has the rights, or is no longer active and signed in.
        StaleUser: the account changed, or was deleted, since it was read.
    """
    entry = _entry(actor, "deactivate", user, reason)
    return recorded(entry, lambda along: services.deactivate(user, along))


def activate(actor: Actor, user: User, reason: str) -> bool:
    """Let `user` sign in again. Returns, costs and raises as `deactivate`."""
    entry = _entry(actor, "activate", user, reason)
    return recorded(entry, lambda along: services.activate(user, along))


def end_session(actor: Actor, user: User, session_id: str, reason: str) -> bool:
    """End one session of `user`; False where it had ended already.

    Costs and raises as `deactivate`; an account that was deleted has no session any more.
    """
    found = sessions.find(user, session_id)
    with override(None):  # it is kept for readers of any language
        what = f"{readable(found.browser)}, {found.address}" if found else ""
    entry = _entry(actor, "endSession", user, reason, what)
    return recorded(entry, lambda along: sessions.end(user, session_id, along))


def end_sessions(actor: Actor, user: User, reason: str) -> bool:
    """End every session of `user`; False where there was none.

    Costs and raises as `end_session`.
    """
    entry = _entry(actor, "endSessions", user, reason)
    return recorded(entry, lambda along: sessions.end_all(user, along))


def break_seen_lock(actor: Actor, seen: LockView, reason: str) -> bool:
    """Take the lock from the holder that was seen, and no later one; False where nobody had it.

    Costs 2 requests, 1 read unit and 6 write units; the same again where it was renewed just then.

    Raises:
        NotStaff: `actor` is no longer staff, active and signed in.
        LockChanged: another holds it by now.
        UnknownLock: it is gone.
    """
    entry = Entry(actor, "breakLock", reason=reason, what=seen.name)
    return recorded(entry, lambda along: break_lock(seen.name, as_seen=seen, along=along))


def _entry(actor: Actor, action: str, user: User, reason: str, what: str = "") -> Entry:
    if actor.user.pk == user.pk:
        raise OwnAccount(user.pk)
    if not may_act_on(actor.user, user):
        raise NotSuperuser(user.pk)
    return Entry(actor, action, reason=reason, on=user, what=what)


def may_act_on(staff: User, user: User) -> bool:
    """Whether `staff` has the rights to act on `user`, as both were read."""
    return staff.is_superuser or not needs_superuser(user)
