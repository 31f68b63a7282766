"""What staff looks up: what a text names, and all about one account."""

from contextlib import suppress

from accounts.models import User
from dynamo.auth.usernames import as_uuid
from dynamo.model.unique import SEPARATOR
from dynamo.tables.guards import Snapshot
from dynamo.transactions import read_together
from dynamo.wire.types import Item
from dynamo.wire.values import text_of
from invoices.document.invoice import series_of
from invoices.models import InvoiceItem, SellerProfile
from invoices.store import issuing
from sequences.check import last_of
from sequences.models import REQUEST_PREFIX

#: For how many years the last invoice number is shown, including this one.
YEARS = 3

#: How often an account is read again if its guard keys change between two reads.
ATTEMPTS = 3


def find(who: str) -> User | Item | None:
    """Find the account that `who` names; without one, perhaps a guard item of the value:

    - as in the commands, an email address (with an @), a primary key (a UUID) or a username;
    - the key of a guard item, `userName#bob` or `email#bob@example.com`, in any spelling;
    - a key that contains an account's key: a series `<key>#2026`, its counter, a request guard.

    Costs 2 requests and 2 read units; 1 more of each for the guard item if there is no account.
    """
    bare = who.removeprefix(InvoiceItem.counter_prefix()).removeprefix(REQUEST_PREFIX)
    if pk := as_uuid(bare.partition(SEPARATOR)[0]):
        return User.get_or_none(pk)
    prefix, separator, value = who.partition(SEPARATOR)
    names = {User.get_attributes()[name].attr_name: name for name in User.unique_names()}
    is_key = separator and prefix in names
    named = {names[prefix]: value} if is_key else {User.attribute_of(who): who}
    try:
        return User.find(**named)
    except User.DoesNotExist:
        with suppress(ValueError):
            return User.read_guard(**named)
    return None


def read_account(
    pk: str,
) -> tuple[User, SellerProfile, list[dict[str, str]], list[tuple[int, int | None]]]:
    """The account `pk`, its seller, its guard items, and its years with their last numbers.

    Of each guard item that it must have: `key`, `owner` (empty without one) and `state`, which is
    `sound`, or what `checkguards` would report, or `unsearchable`.

    All are as stored at one instant. The last number of a damaged counter is None.

    Costs 2 requests, 1 read unit, and 2 more for each of about seven items. Each guard item that
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
        item, seller, *others = read_together(
            [User(pk), SellerProfile(pk), *map(User, keys), *counters]
        )
        if item is None:
            raise User.DoesNotExist
        user = User.from_raw_data(item)
        if list(User.guard_keys_of(user.stored).values()) == keys:
            break
    views = [_guard_view(key, user, guard) for key, guard in zip(keys, others, strict=False)]
    last = zip(years, others[len(keys) :], strict=True)
    profile = SellerProfile.from_raw_data(seller) if seller else SellerProfile(pk)
    numbers = [(year, last_of(InvoiceItem, item)) for year, item in last if item]
    return user, profile, views, numbers


def _guard_view(key: str, user: User, stored: Item | None) -> dict[str, str]:
    snapshot = Snapshot(User, key, stored, {user.pk: user.stored})
    if snapshot.owner not in {None, user.pk}:
        # What is wrong depends on the account that it names.
        snapshot = Snapshot.read(User, key, [user.pk])
    findings = snapshot.findings(User.date_joined.attr_name)
    state = findings[0].fault if findings else "sound"
    return {"key": key, "owner": text_of(snapshot.guard, "owner"), "state": state}
