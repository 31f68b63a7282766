"""Checks and repairs the guard items of a model: each item has its own, each belongs to an item.

For any model, while the site is used, in bounded memory.

1. Claims. One scan. An item claims the guard items of its values, a guard item claims the owner
   that it names. Sorted by key, a correct guard item is two claims that name one item; nothing else
   is read for it.
2. Confirmation. A scan is not isolated from transactions, so everything else is only suspect. It is
   confirmed by reading the guard item and the items that claim it at one instant
   (`checking.snapshots`).
3. Repair, if asked for: one transaction, under the condition that these items have not changed. If
   they have, it is confirmed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter

from dynamo._internal import bulk
from dynamo._internal.checking.snapshots import (
    KINDS,
    ChangedMeanwhile,
    Finding,
    Kind,
    Snapshot,
    claims_of,
    is_owner,
    names_in,
)
from dynamo._internal.findings import Spool
from dynamo._internal.items import Item
from dynamo._internal.tally import CountingPool
from dynamo.models import Model
from dynamo.transactions import READ_TOGETHER
from dynamo.unique.declarations import REQUEST_ID, SEPARATOR
from dynamo.unique.guarding import GUARD_ATTRIBUTES, OWNER, is_reserved

#: How often a repair is tried if the items change in between.
REPAIR_ATTEMPTS = 2

CONFIRM_THREADS = 8

Progress = Callable[[str, int], None]
"""Called with what is done, and how many more of it are done."""

# They sort the claim of a guard item before those of users.
_BY_GUARD, _BY_RESERVATION, _BY_USER = "guard", "reservation", "user"


@dataclass(frozen=True)
class Sizes:
    """How much is processed at once; tests use less.

    One read takes at most `READ_TOGETHER` items: the guard item, its owner, `users_together` users
    and one more.
    """

    segments: int = bulk.SEGMENTS
    page_limit: int | None = None
    users_together: int = READ_TOGETHER - 3
    confirm_ahead: int = 256


class Report:
    """What a check found. `users` and `guards` count items, `repaired` counts findings.

    `shared` counts the findings that no repair can settle: two users have the same value, and this
    one does not have its guard item.

    `unusable` counts the users with a unique attribute that is stored in an unusable form (absent
    though required, not a text, impossible to normalize); `unusable_example` is the primary key of
    one, with the attribute's stored name.
    """

    def __init__(self, spools: dict[Kind, Spool]) -> None:
        self._spools = spools
        self.users = 0
        self.guards = 0
        self.repaired = 0
        self.shared = 0
        self.unusable = 0
        self.unusable_example: tuple[str, str] | None = None

    def note(self, finding: Finding, *, repaired: bool) -> None:
        """Add a confirmed finding."""
        shared = not finding.repairable
        outcome = "repaired" if repaired else "shared" if shared else ""
        self._spools[finding.kind].add(finding.key, finding.pk, outcome)
        self.repaired += repaired
        self.shared += shared

    def count(self, kind: Kind) -> int:
        """The number of findings of this kind, repaired ones included."""
        return len(self._spools[kind])

    def findings(self, kind: Kind) -> Iterator[tuple[str, str, str]]:
        """The findings of this kind, sorted by key: user's pk, guard item's key, outcome.

        The outcome is `repaired`, `shared` (no repair can settle it), or empty.
        """
        for key, pk, outcome in self._spools[kind]:
            yield pk, key, outcome

    @property
    def still_wrong(self) -> int:
        """The number of findings that were not repaired."""
        return sum(map(self.count, KINDS)) - self.repaired


@dataclass(frozen=True)
class _Suspect:
    """A guard item's key with the users to read along with it.

    If there are more users than one read takes, the others follow in further reads, each with
    `anchor`, a user of the first one.
    """

    key: str
    pks: list[str]
    anchor: str | None = None


@contextmanager
def check_guards(
    model: type[Model],
    *,
    repair: bool = False,
    oldest_by: str | None = None,
    progress: Progress | None = None,
    sizes: Sizes | None = None,
) -> Iterator[Report]:
    """Compare all items with all guard items. Yields the report, which is valid in the block.

    With `repair`, missing guard items are written, orphaned ones deleted (also those that version
    0.1 reserved, which are not reported otherwise), and those of users that do not have the value
    are given to the one user that has. Two users with the same value are reported and not changed.
    If neither has a guard item, the oldest one gets it, by the attribute stored as `oldest_by` (a
    time as text). Guard items of attributes that are not declared are not changed, nor is any item
    that is neither an item nor a guard item of the model.

    Costs a scan: about 1 request per MB and 1 read unit per 4 KB of all that is stored. Each
    suspect costs 1 request and 2 read units for each of its items, each repair 1 request and 4 to 6
    write units. Uses about 260 bytes of disk for each guard item and each user's value.

    Raises:
        Unavailable, Rejected, TableMissing: see `client.sending`; repairs stay.
    """
    check = _Check(model, repair, oldest_by, progress or _ignore, sizes or Sizes())
    with ExitStack() as spools:
        report = Report({kind: spools.enter_context(Spool()) for kind in KINDS})
        with Spool() as claims:
            check.collect(claims, report)
            check.confirm(claims, report)
        yield report


def _ignore(_what: str, _count: int) -> None:
    return


@dataclass(frozen=True)
class _Check:
    model: type[Model]
    repair: bool
    oldest_by: str | None
    progress: Progress
    sizes: Sizes

    def collect(self, claims: Spool, report: Report) -> None:
        """Scan the table, or both, and keep what each item claims."""
        names = [name for each in self.model._unique_keys for name in each.stored_names]
        keys = self.model.key_attribute_names()
        guards = self.model._guard_table()
        for table in sorted({self.model.table(), guards.name}):
            key_names = keys if table == self.model.table() else [guards.key_name]
            pages = bulk.pages(
                table,
                dict.fromkeys([*key_names, *GUARD_ATTRIBUTES, *names, REQUEST_ID]),
                segments=self.sizes.segments,
                page_limit=self.sizes.page_limit,
            )
            for page in pages:
                for item in page:
                    self._claim(item, table, guards.name, claims, report)
                self.progress("Items read", len(page))

    def _claim(self, item: Item, table: str, guards: str, claims: Spool, report: Report) -> None:
        key_name = self.model._guard_table().key_name
        guard_key = item[key_name].get("S", "") if key_name in item and table == guards else ""
        if guard_key and names_in(self.model, guard_key):
            owner = str(item.get(OWNER, {}).get("S", ""))
            claims.add(guard_key, _BY_RESERVATION if is_reserved(item) else _BY_GUARD, owner)
            report.guards += 1
        elif table == self.model.table() and not self._is_strange(guard_key, item):
            pk = self.model.owner_of(item)
            keys, unusable = claims_of(self.model, item)
            report.users += 1
            for key in keys:
                claims.add(key, _BY_USER, pk)
            if unusable:
                report.unusable += 1
                report.unusable_example = report.unusable_example or (pk, unusable)

    def _is_strange(self, key: str, item: Item) -> bool:
        """Whether it is the guard item of an attribute that is no longer declared, or the like."""
        names = (name for each in self.model._unique_keys for name in each.stored_names)
        return SEPARATOR in key and not any(name in item for name in names)

    def confirm(self, claims: Spool, report: Report) -> None:
        """Confirm suspects, repair them if asked for, and report them."""
        suspects = self._suspects(claims)
        with CountingPool(CONFIRM_THREADS) as pool:
            # A pool takes everything at once, so it gets a batch at a time.
            while batch := list(islice(suspects, self.sizes.confirm_ahead)):
                for findings in pool.map(self._confirmed, batch):
                    for finding, repaired in findings:
                        report.note(finding, repaired=repaired)
                self.progress("Suspects confirmed", len(batch))

    def _suspects(self, claims: Spool) -> Iterator[_Suspect]:
        for key, claims_of_key in groupby(claims, key=itemgetter(0)):
            first = list(islice(claims_of_key, self.sizes.users_together))
            if self._agree(first):
                continue
            yield _Suspect(key, _named(self.model, first))
            anchor = first[-1][2]
            while more := list(islice(claims_of_key, self.sizes.users_together)):
                if rivals := [pk for pk in _named(self.model, more) if pk != anchor]:
                    yield _Suspect(key, rivals, anchor)

    def _agree(self, claims: list[list[str]]) -> bool:
        """Whether a guard item and one user name each other, and no other user claims it."""
        kinds = [by for _key, by, _pk in claims]
        if kinds == [_BY_RESERVATION]:
            # It keeps nothing, so it is not an error; a repair removes it.
            return not self.repair
        return kinds == [_BY_GUARD, _BY_USER] and claims[0][2] == claims[1][2]

    def _confirmed(self, suspect: _Suspect) -> list[tuple[Finding, bool]]:
        """What is wrong, each with whether it was repaired; nothing if it no longer is."""
        if suspect.anchor is not None:
            return [(rival, False) for rival in self._rivals(suspect.anchor, suspect)]
        attempts = REPAIR_ATTEMPTS if self.repair else 0
        while True:
            snapshot = Snapshot.read(self.model, suspect.key, suspect.pks)
            findings = snapshot.findings(self.oldest_by)
            if not (attempts and findings and findings[0].repairable):
                return [(finding, False) for finding in findings]
            attempts -= 1
            try:
                snapshot.repair(findings[0])
            except ChangedMeanwhile:
                continue
            return [(finding, finding is findings[0]) for finding in findings]

    def _rivals(self, anchor: str, suspect: _Suspect) -> list[Finding]:
        """The users beyond the first read that have the value without its guard item.

        The first read decides what happens to the guard item.
        """
        snapshot = Snapshot.read(self.model, suspect.key, [anchor, *suspect.pks])
        return [
            Finding("foreign", finding.pk, finding.key, repairable=False)
            for finding in snapshot.findings()
            if finding.kind != "orphaned" and finding.pk in suspect.pks
        ]


def _named(model: type[Model], claims: list[list[str]]) -> list[str]:
    """The items that a guard item names or that have its value."""
    return [pk for pk in dict.fromkeys(pk for _key, _by, pk in claims) if is_owner(model, pk)]
