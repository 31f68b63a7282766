"""Finds an account by a username, an email address or a stored key."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import User
from accounts.values import as_uuid
from dynamo.unique.attributes import SEPARATOR
from dynamo.unique.guards import Guard
from invoices.models import InvoiceItem
from sequences.models import REQUEST_PREFIX


@dataclass(frozen=True)
class Found:
    """An account; without one, perhaps a guard of the value."""

    user: User | None = None
    guard: Guard | None = None


def find(who: str) -> Found:
    """Find what `who` names:

    - as in the commands, an email address (with an @), a primary key (a UUID) or a username;
    - a guard's key, `userName#bob` or `email#bob@example.com`, in any spelling;
    - a key that contains an account's key: a series `<key>#2026`, its counter, a request guard.

    Costs 2 requests and 2 read units; 1 more of each for the guard if there is no account.
    """
    if key := _account_key(who):
        return Found(_user(key))
    name, value = _name_and_value(who)
    try:
        return Found(User.unique.get(name, value))
    except User.DoesNotExist:
        return Found(guard=_guard(name, value))


def _account_key(who: str) -> str | None:
    bare = who.removeprefix(InvoiceItem.counter_prefix()).removeprefix(REQUEST_PREFIX)
    return as_uuid(bare.partition(SEPARATOR)[0])


def _name_and_value(who: str) -> tuple[str, str]:
    prefix, separator, value = who.partition(SEPARATOR)
    names = {User.unique.stored_name(name): name for name in User.unique.normalise}
    if separator and prefix in names:
        return names[prefix], value
    return User.attribute_of(who), who


def _user(pk: str) -> User | None:
    try:
        return User.get(pk)
    except User.DoesNotExist:
        return None


def _guard(name: str, value: str) -> Guard | None:
    """The guard of the value, for example one that is reserved or whose account is deleted."""
    try:
        guard: Guard = User.unique.guard_model.get(User.unique.key(name, value))
    except (ValueError, User.unique.guard_model.DoesNotExist):
        return None
    return guard
