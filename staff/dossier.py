"""An account with its guards and its numbers of invoices, all as stored at one instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.models import User
from dynamo.guards import Guard
from dynamo.guardstate import Snapshot, reservation_noted
from dynamo.models import Item
from dynamo.transaction import read_together
from invoices.documents import series_of
from invoices.issuing import today
from invoices.models import InvoiceItem
from sequences.groups import counted

#: For how many years the last number is shown, including this one.
YEARS = 3

#: How often an account is read that changes between two reads.
ATTEMPTS = 3

VERDICTS: dict[str, Any] = {
    "sound": _("Sound"),
    "reserved": _("Reserved"),
    "lapsed": _("The reservation lapsed"),
    "missing": _("Missing"),
    "orphaned": _("Nobody has this value"),
    "foreign": _("Another account’s"),
}


@dataclass(frozen=True)
class GuardView:
    """A guard that the account must have or has reserved; `owner` is empty if there is none."""

    key: str
    owner: str
    expires_at: datetime | None
    verdict: str

    @property
    def label(self) -> Any:
        return VERDICTS[self.verdict]

    @property
    def is_wrong(self) -> bool:
        """Whether `checkguards` would report it."""
        return self.verdict in {"missing", "orphaned", "foreign"}


@dataclass(frozen=True)
class Dossier:
    """`invoices` are pairs of a year and its last number (None: the counter is damaged)."""

    user: User
    guards: list[GuardView]
    invoices: list[tuple[int, int | None]]


def dossier_of(pk: str) -> Dossier:
    """The account `pk` with its guards and series.

    Costs 2 requests, 1 read unit, and 2 more for each of about six items. Each guard that names
    another owner costs 1 more request.

    Raises:
        User.DoesNotExist: there is no such account.
        DamagedItem: it cannot be read.
    """
    user = User.get(pk)
    for _attempt in range(ATTEMPTS):
        keys = _keys(user)
        this_year = today().year
        years = range(this_year, this_year - YEARS, -1)
        counters = [InvoiceItem.counter_of(series_of(pk, year)) for year in years]
        guards = [User.unique.guard_model(key) for key in keys]
        item, *others = read_together([User(pk), *guards, *counters])
        if item is None:
            raise User.DoesNotExist
        user = User.from_raw_data(item)
        if _keys(user) == keys:
            break
    found = zip(keys, others, strict=False)
    heads = zip(years, others[len(keys) :], strict=True)
    return Dossier(
        user,
        [_guard_view(key, user, guard) for key, guard in found],
        [(year, _last(counter)) for year, counter in heads if counter],
    )


def _keys(user: User) -> list[str]:
    """The keys of the guards of the account's values, then of the values it has reserved."""
    keys = list(User.unique.keys_of(user).values())
    for name in User.unique.pending:
        noted = reservation_noted(User.unique, name, user.stored)
        if noted and noted[0] not in keys:
            keys.append(noted[0])
    return keys


def _guard_view(key: str, user: User, stored: Item | None) -> GuardView:
    snapshot = Snapshot(User.unique, key, stored, {user.pk: user.stored})
    if snapshot.owner not in {None, user.pk}:
        # The verdict depends on the account that it names.
        snapshot = Snapshot.read(User.unique, key, [user.pk])
    findings = snapshot.findings(User.date_joined.attr_name)
    guard: Guard | None = None
    if snapshot.guard is not None and "S" in snapshot.guard.get("owner", {}):
        guard = User.unique.guard_model.from_raw_data(snapshot.guard)
    return GuardView(
        key,
        guard.owner if guard else "",
        datetime.fromtimestamp(guard.expires, UTC) if guard and guard.expires else None,
        findings[0].kind if findings else _sound(guard, user.pk),
    )


def _sound(guard: Guard | None, pk: str) -> str:
    if guard is None or guard.owner != pk or guard.has_lapsed:
        return "lapsed"
    return "reserved" if guard.is_reserved else "sound"


def _last(counter: Item) -> int | None:
    try:
        return counted(counter, InvoiceItem).number
    except ValueError:
        return None
