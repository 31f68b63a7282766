"""Finding an account by whatever staff has in hand: a name, an address, a key of ours."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import User
from accounts.values import as_uuid
from dynamo.guards import Guard
from dynamo.unique import SEPARATOR
from invoices.models import InvoiceItem
from sequences.models import REQUEST_PREFIX


@dataclass(frozen=True)
class Found:
    """What goes by a text: an account; else perhaps a guard that leads to none."""

    user: User | None = None
    guard: Guard | None = None


def find(who: str) -> Found:
    """What goes by `who`, which may be:

    - as in the commands, with an @ an address, a UUID a primary key, else a user name;
    - a guard's key, `userName#bob` or `email#bob@example.com`, in any spelling;
    - what begins with an account's key: a series `<key>#2026`, its counter, a guard of a request.

    Costs 2 requests and 2 read units; 1 more where nobody is found, for the guard.
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
    """A guard of the value as it is: reserved, say, or of an account that is gone."""
    try:
        guard: Guard = User.unique.guard_model.get(User.unique.key(name, value))
    except (ValueError, User.unique.guard_model.DoesNotExist):
        return None
    return guard
