"""Finds an account, and reads it with its guard items and the last numbers of its invoices."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import User
from dynamo.auth.usernames import as_uuid
from dynamo.extending import SEPARATOR, Item, Snapshot, read_together
from invoices.document.invoice import series_of
from invoices.models import InvoiceItem
from invoices.store import issuing
from sequences.extending import REQUEST_PREFIX, last_of

#: For how many years the last invoice number is shown, including this one.
YEARS = 3

#: How often an account is read again if its guard keys change between two reads.
ATTEMPTS = 3


def find(who: str) -> User | GuardView | None:
    """Find the account that `who` names; without one, perhaps a guard item of the value:

    - as in the commands, an email address (with an @), a primary key (a UUID) or a username;
    - the key of a guard item, `userName#bob` or `email#bob@example.com`, in any spelling;
    - a key that contains an account's key: a series `<key>#2026`, its counter, a request guard.

    Costs 2 requests and 2 read units; 1 more of each for the guard item if there is no account.
    """
    bare = who.removeprefix(InvoiceItem.counter_prefix()).removeprefix(REQUEST_PREFIX)
    if pk := as_uuid(bare.partition(SEPARATOR)[0]):
        return User.get_or_none(pk)
    name, value = _name_and_value(who)
    try:
        return User.find(**{name: value})
    except User.DoesNotExist:
        return _guard(name, value)


def _name_and_value(who: str) -> tuple[str, str]:
    prefix, separator, value = who.partition(SEPARATOR)
    names = {User.get_attributes()[name].attr_name: name for name in User.unique_names()}
    if separator and prefix in names:
        return names[prefix], value
    return User.attribute_of(who), who


def _guard(name: str, value: str) -> GuardView | None:
    """The guard item of the value, for example one whose user is deleted."""
    try:
        guard = User.read_guard(**{name: value})
    except ValueError:
        return None
    if guard is None:
        return None
    return GuardView(guard["pk"]["S"], guard.get("owner", {}).get("S", ""), "orphaned")


@dataclass(frozen=True)
class GuardView:
    """A guard item that the account must have; `owner` is empty without one.

    `state` is `sound`, or what `checkguards` would report, or `unsearchable`.
    """

    key: str
    owner: str
    state: str


def read_account(pk: str) -> tuple[User, list[GuardView], list[tuple[int, int | None]]]:
    """The account `pk`, its guard items, and its years with their last numbers of an invoice.

    All are as stored at one instant. The last number of a damaged counter is None.

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
        keys = list(User.guard_keys_of(user.stored).values())
        guards = [User(key) for key in keys]
        item, *others = read_together([User(pk), *guards, *counters])
        if item is None:
            raise User.DoesNotExist
        user = User.from_raw_data(item)
        if list(User.guard_keys_of(user.stored).values()) == keys:
            break
    views = [_guard_view(key, user, guard) for key, guard in zip(keys, others, strict=False)]
    last = zip(years, others[len(keys) :], strict=True)
    return user, views, [(year, last_of(InvoiceItem, item)) for year, item in last if item]


def _guard_view(key: str, user: User, stored: Item | None) -> GuardView:
    snapshot = Snapshot(User, key, stored, {user.pk: user.stored})
    if snapshot.owner not in {None, user.pk}:
        # What is wrong depends on the account that it names.
        snapshot = Snapshot.read(User, key, [user.pk])
    findings = snapshot.findings(User.date_joined.attr_name)
    owner = (snapshot.guard or {}).get("owner", {}).get("S", "")
    return GuardView(key, owner, findings[0].fault if findings else "sound")
