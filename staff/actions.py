"""Actions of staff on accounts and locks, each one transaction with its audit-log entries.

None of them grants rights. An account's own pages are for its owner: staff acts on other accounts
only, and only a superuser acts on the account of another member of staff.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from django.utils.translation import override

from accounts import services
from accounts.emails import mails
from accounts.limits.attempts import begin_mail
from accounts.models import User
from accounts.recovery.mails import send_reset
from accounts.sessions import services as sessions
from accounts.sessions.browsers import readable
from dynamo import Transaction
from locks import LockChanged
from locks.extending import BREAK_ATTEMPTS, LockView, break_lock
from staff import audit_log
from staff.audit_log import Actor, needs_superuser
from staff.exceptions import MailNotSent, NotSuperuser, OwnAccount


def deactivate(actor: Actor, user: User, reason: str) -> bool:
    """Prevent `user` from signing in and end its sessions. False if it was already so.

    Costs 1 request and 8 write units (1 KB of account); nothing if it was already so.

    Raises:
        OwnAccount: `user` is the actor's own account.
        NotSuperuser: `user` was staff when it was read, and `actor` is not a superuser.
        NotStaff: `actor` no longer has the rights, or is no longer active and signed in.
        StaleUser: the account changed or was deleted since it was read.
    """
    _check(actor, user)
    write = Transaction()
    services.deactivate(user, write=write)
    return audit_log.commit(write, actor, "deactivate", on=user, reason=reason)


def activate(actor: Actor, user: User, reason: str) -> bool:
    """Let `user` sign in again. Returns, costs and raises as `deactivate`."""
    _check(actor, user)
    write = Transaction()
    services.activate(user, write=write)
    return audit_log.commit(write, actor, "activate", on=user, reason=reason)


def end_session(actor: Actor, user: User, session_id: str, reason: str) -> bool:
    """End one session of `user`. False if it had already ended, also by a deletion of the account.

    Costs and raises as `deactivate`, but for `StaleUser`.
    """
    _check(actor, user)
    found = sessions.find(user, session_id)
    with override(None):  # it is stored for readers of any language
        what = f"{readable(found.browser)}, {found.address}" if found else ""
    write = Transaction()
    sessions.end(user, session_id, write=write)
    return audit_log.commit(write, actor, "endSession", on=user, reason=reason, what=what)


def end_sessions(actor: Actor, user: User, reason: str) -> bool:
    """End every session of `user`. False if there was none. Costs and raises as `end_session`."""
    _check(actor, user)
    write = Transaction()
    sessions.end_all(user, write=write)
    return audit_log.commit(write, actor, "endSessions", on=user, reason=reason)


def send_password_reset(actor: Actor, user: User, reason: str) -> bool:
    """Send `user` the link that sets a new password. False if no password can sign in to it.

    Costs 2 requests of the limits, 1 for the audit log, and those of `recovery.mails.send_reset`.

    Raises:
        TooManyAttempts: too many mails to this address, or from the actor's; nothing was written.
        MailNotSent: no mail server took it.
        OwnAccount, NotSuperuser, NotStaff: as `deactivate`.
    """
    if not (user.is_active and user.has_usable_password()):
        return False
    return _mail(actor, user, reason, "reset", lambda: send_reset(user.email))


def send_confirmation(actor: Actor, user: User, reason: str) -> bool:
    """Send `user` the link that confirms the email address. False if it is confirmed.

    Costs and raises as `send_password_reset`, but for the mail those of `send_confirmation`.
    """
    if user.is_confirmed:
        return False
    return _mail(actor, user, reason, "confirm", lambda: mails.send_confirmation(user))


#: What the audit log calls the mails of each kind.
_MAILS = {"reset": "sendPasswordReset", "confirm": "sendConfirmation"}


def _mail(actor: Actor, user: User, reason: str, kind: str, send: Callable[[], bool]) -> bool:
    _check(actor, user)
    begin_mail(kind, user.email, actor.address)
    audit_log.record(actor, _MAILS[kind], on=user, reason=reason)
    if not send():
        raise MailNotSent(user.pk)
    return True


def break_seen_lock(actor: Actor, seen: LockView, reason: str) -> bool:
    """Take the lock from the holder in `seen`, but from no later one. False if it was free.

    Costs 2 requests, 1 read unit and 6 write units; the same again if it was renewed just then.

    Raises:
        NotStaff: `actor` is no longer staff, active and signed in.
        LockChanged: the lock has another holder.
        UnknownLock: the lock does not exist any more.
    """
    for _attempt in range(BREAK_ATTEMPTS):
        write = Transaction()
        break_lock(seen.name, as_seen=seen, write=write)
        # The holder may have renewed just now: look again who holds it.
        with suppress(LockChanged):
            return audit_log.commit(write, actor, "breakLock", reason=reason, what=seen.name)
    raise LockChanged(seen.name)


def _check(actor: Actor, user: User) -> None:
    if actor.user.pk == user.pk:
        raise OwnAccount(user.pk)
    if not may_act_on(actor.user, user):
        raise NotSuperuser(user.pk)


def may_act_on(staff: User, user: User) -> bool:
    """Whether `staff` has the rights to act on `user`, as both were read."""
    return staff.is_superuser or not needs_superuser(user)
