"""Finds an account, and reads it with its guard items and the last numbers of its invoices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.values import as_uuid
from dynamo.items import Item
from dynamo.transactions import read_together
from dynamo.unique.attributes import SEPARATOR
from dynamo.unique.guards import Guard
from dynamo.unique.snapshots import Snapshot, reservation_noted
from invoices import issuing
from invoices.documents import series_of
from invoices.models import InvoiceItem
from sequences.groups import counted
from sequences.models import REQUEST_PREFIX

#: For how many years the last invoice number is shown, including this one.
YEARS = 3

#: How often an account is read again if its guard keys change between two reads.
ATTEMPTS = 3

GUARD_STATES: dict[str, Any] = {
    "sound": _("Sound"),
    "reserved": _("Reserved"),
    "lapsed": _("The reservation lapsed"),
    "missing": _("Missing"),
    "orphaned": _("No account has this value"),
    "foreign": _("Another account’s"),
}


@dataclass(frozen=True)
class Found:
    """An account; without one, perhaps a guard item of the value."""

    user: User | None = None
    guard: Guard | None = None


def find(who: str) -> Found:
    """Find what `who` names:

    - as in the commands, an email address (with an @), a primary key (a UUID) or a username;
    - the key of a guard item, `userName#bob` or `email#bob@example.com`, in any spelling;
    - a key that contains an account's key: a series `<key>#2026`, its counter, a request guard.

    Costs 2 requests and 2 read units; 1 more of each for the guard item if there is no account.
    """
    bare = who.removeprefix(InvoiceItem.counter_prefix()).removeprefix(REQUEST_PREFIX)
    if pk := as_uuid(bare.partition(SEPARATOR)[0]):
        return Found(_user(pk))
    name, value = _name_and_value(who)
    try:
        return Found(User.unique.get(name, value))
    except User.DoesNotExist:
        return Found(guard=_guard(name, value))


def _user(pk: str) -> User | None:
    try:
        return User.get(pk)
    except User.DoesNotExist:
        return None


def _name_and_value(who: str) -> tuple[str, str]:
    prefix, separator, value = who.partition(SEPARATOR)
    names = {User.unique.stored_name(name): name for name in User.unique.normalize}
    if separator and prefix in names:
        return names[prefix], value
    return User.attribute_of(who), who


def _guard(name: str, value: str) -> Guard | None:
    """The guard item of the value, for example one that is reserved or whose user is deleted."""
    try:
        guard: Guard = User.unique.guard_model.get(User.unique.key(name, value))
    except (ValueError, User.unique.guard_model.DoesNotExist):
        return None
    return guard


@dataclass(frozen=True)
class GuardView:
    """A guard item that the account must have or has reserved; `owner` is empty without one."""

    key: str
    owner: str
    expires_at: datetime | None
    state: str

    @property
    def label(self) -> Any:
        return GUARD_STATES[self.state]

    @property
    def is_wrong(self) -> bool:
        """Whether `checkguards` would report it."""
        return self.state in {"missing", "orphaned", "foreign"}


@dataclass(frozen=True)
class AccountDetails:
    """`invoices` are pairs of a year and its last number (None: the counter is damaged)."""

    user: User
    guards: list[GuardView]
    invoices: list[tuple[int, int | None]]


def read_account(pk: str) -> AccountDetails:
    """The account `pk` with its guard items and counters, all as stored at one instant.

    Costs 2 requests, 1 read unit, and 2 more for each of about six items. Each guard item that
    names another owner costs 1 more request.

    Raises:
        User.DoesNotExist: there is no such account.
        DamagedItem: it cannot be read.
    """
    user = User.get(pk)
    this_year = issuing.today().year
    years = range(this_year, this_year - YEARS, -1)
    counters = [InvoiceItem.counter_of(series_of(pk, year)) for year in years]
    for _attempt in range(ATTEMPTS):
        keys = _guard_keys(user)
        guards = [User.unique.guard_model(key) for key in keys]
        item, *others = read_together([User(pk), *guards, *counters])
        if item is None:
            raise User.DoesNotExist
        user = User.from_raw_data(item)
        if _guard_keys(user) == keys:
            break
    return AccountDetails(
        user,
        [_guard_view(key, user, guard) for key, guard in zip(keys, others, strict=False)],
        [
            (year, _last_number(counter))
            for year, counter in zip(years, others[len(keys) :], strict=True)
            if counter
        ],
    )


def _guard_keys(user: User) -> list[str]:
    """The keys of the guard items of the account's values, then of those it has reserved."""
    keys = list(User.unique.keys_of(user).values())
    for name in User.unique.pending:
        noted = reservation_noted(User.unique, name, user.stored)
        if noted and noted[0] not in keys:
            keys.append(noted[0])
    return keys


def _guard_view(key: str, user: User, stored: Item | None) -> GuardView:
    snapshot = Snapshot(User.unique, key, stored, {user.pk: user.stored})
    if snapshot.owner not in {None, user.pk}:
        # What is wrong depends on the account that it names.
        snapshot = Snapshot.read(User.unique, key, [user.pk])
    findings = snapshot.findings(User.date_joined.attr_name)
    guard: Guard | None = None
    if snapshot.guard is not None and "S" in snapshot.guard.get("owner", {}):
        guard = User.unique.guard_model.from_raw_data(snapshot.guard)
    return GuardView(
        key,
        guard.owner if guard else "",
        datetime.fromtimestamp(guard.expires, UTC) if guard and guard.expires else None,
        findings[0].kind if findings else _sound_state(guard, user.pk),
    )


def _sound_state(guard: Guard | None, pk: str) -> str:
    if guard is None or guard.owner != pk or guard.has_lapsed:
        return "lapsed"
    return "reserved" if guard.is_reserved else "sound"


def _last_number(counter: Item) -> int | None:
    try:
        return counted(counter, InvoiceItem).number
    except ValueError:
        return None
