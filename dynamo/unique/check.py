"""Whether every item has exactly its guards, and every guard exactly its item; and the cure.

Works for any model that declares `UniqueAttributes`, while the site is used, in bounded memory.

1. Claims. One scan. A user claims the guards of its values, a guard claims the owner that it
   names. Sorted by the guard's key, a sound guard is two claims that name one user. Nothing is
   looked up for it. So with reservations, which are claimed by their ids as well.
2. Confirmation. A scan is not isolated from transactions, so all else is only suspect. What is
   stored now under the guard's key and those of its claimants, read at one instant, tells
   (`dynamo.unique.snapshots`).
3. Repair, where it is asked for: one transaction on what that reading saw; where something
   changed meanwhile, confirmation begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from dynamo import bulk
from dynamo.findings import RUN_LENGTH, Spool
from dynamo.models import Item
from dynamo.tally import CountingPool
from dynamo.transactions import READ_TOGETHER
from dynamo.unique.attributes import SEPARATOR, UniqueAttributes
from dynamo.unique.guards import Guard
from dynamo.unique.snapshots import (
    GUARD_ATTRIBUTES,
    KINDS,
    ChangedMeanwhile,
    Finding,
    Kind,
    Snapshot,
    is_user_key,
    key_carried,
    noted_names,
    reservation_noted,
    reservation_of,
    stored_names,
)

#: How often a guard's repair is tried; each refusal means that another changed it just then.
MEND_ATTEMPTS = 2

Progress = Callable[[str, int], None]
"""Told what is being done, and how many more of it are done."""

# In sorted order, so that a guard's own claim is read before those of users, and last those of
# users who once reserved the value, and of whom alone nothing can be wrong.
_BY_GUARD, _BY_RESERVATION, _BY_USER, _BY_WAITING = "guard", "reservation", "user", "waiting"


@dataclass(frozen=True)
class Sizes:
    """How much is taken at once; tests take less.

    A transaction reads at most so many items (`dynamo.transactions.READ_TOGETHER`): the guard, its
    owner and `users_together` and one more.
    """

    segments: int = bulk.SEGMENTS
    page_limit: int | None = None
    run_length: int = RUN_LENGTH
    users_together: int = READ_TOGETHER - 3
    confirm_threads: int = 8
    confirm_ahead: int = 256


class Report:
    """What a check found. `users` and `guards` are counts of the scan, `repaired` of findings.

    `shared` counts those that no repair can settle: of two live users with one value, who does not
    have its guard.

    `unusable` counts the users that have a unique attribute stored as it cannot be used (absent
    though required, no text, no comparable form); `unusable_example` is the primary key of one,
    with the attribute as stored.
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
        """Keep a confirmed finding."""
        shared = not finding.mendable
        outcome = "repaired" if repaired else "shared" if shared else ""
        self._spools[finding.kind].add(finding.key, finding.pk, outcome)
        self.repaired += repaired
        self.shared += shared

    def note_unusable(self, pk: str, stored_name: str) -> None:
        """Keep a user of whom an attribute cannot be used."""
        self.unusable += 1
        self.unusable_example = self.unusable_example or (pk, stored_name)

    def count(self, kind: Kind) -> int:
        """How many findings of this kind there were, the repaired ones included."""
        return len(self._spools[kind])

    def findings(self, kind: Kind) -> Iterator[tuple[str, str, str]]:
        """The findings of this kind, by guard key: user's pk, guard's key, what became of it.

        That is `repaired`, `shared` (no repair can settle it), or empty.
        """
        for key, pk, outcome in self._spools[kind]:
            yield pk, key, outcome

    @property
    def still_wrong(self) -> int:
        """How many findings were not repaired."""
        return sum(map(self.count, KINDS)) - self.repaired


@dataclass(frozen=True)
class _Suspect:
    """A guard's key with users to read beside it.

    More users than fit into one reading follow in further ones, each with `anchor`, a user of
    the first, beside them.
    """

    key: str
    pks: list[str]
    anchor: str | None = None


@contextmanager
def check_guards(
    unique: UniqueAttributes[Any],
    *,
    repair: bool = False,
    oldest_by: str | None = None,
    progress: Progress | None = None,
    sizes: Sizes | None = None,
) -> Iterator[Report]:
    """Compare all items with all guards; yields the report, which lives as long as the block.

    With `repair`, missing guards are written, orphaned ones deleted, and guards of users who do
    not carry the value are given to the one user who does. Two live users with one value are
    reported and left alone; where neither has a guard, one is written for the oldest, by the
    attribute stored as `oldest_by` (a time as text). Guards of attributes that are not declared
    are left alone, as is every item that is neither a user nor a guard.

    Costs a scan: about 1 request per MB and 1 read unit per 4 KB of all that is stored. Each
    suspect costs 1 request and 2 read units for each of its items, each repair 1 and 4 to 6 write
    units. On disk some 130 bytes for each guard and each user's value while it runs.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending`; repairs stay.
    """
    check = _Check(unique, repair, oldest_by, progress or _silence, sizes or Sizes())
    with ExitStack() as spools:
        report = Report({kind: spools.enter_context(check.new_spool()) for kind in KINDS})
        with check.new_spool() as claims:
            check.collect(claims, report)
            check.settle(claims, report)
        yield report


def _silence(_what: str, _count: int) -> None:
    return


@dataclass(frozen=True)
class _Check:
    unique: UniqueAttributes[Any]
    repair: bool
    oldest_by: str | None
    progress: Progress
    sizes: Sizes

    @cached_property
    def names(self) -> dict[str, str]:
        return stored_names(self.unique)

    def new_spool(self) -> Spool:
        return Spool(self.sizes.run_length)

    def collect(self, claims: Spool, report: Report) -> None:
        """Scan the table, or both, and keep what each item claims."""
        users = self.unique.model
        guards = self.unique.guard_model
        for table in sorted({users.table(), guards.table()}):
            [key_name] = (users if table == users.table() else guards).key_attribute_names()
            attributes = dict.fromkeys([key_name, *GUARD_ATTRIBUTES, *self.names, *self._noted()])
            for page in bulk.pages(
                table,
                attributes,
                segments=self.sizes.segments,
                page_limit=self.sizes.page_limit,
            ):
                for item in page:
                    key = item[key_name]["S"]
                    if is_user_key(key):
                        if table == users.table():
                            self._claim_by_user(key, item, claims, report)
                    elif key.partition(SEPARATOR)[0] in self.names and table == guards.table():
                        self._claim_by_guard(key, item, claims)
                        report.guards += 1
                self.progress("Items read", len(page))

    def _noted(self) -> Iterator[str]:
        """The attributes, as stored, in which users note reservations."""
        for name in self.names.values():
            yield from noted_names(self.unique, name) or ()

    def _claim_by_guard(self, key: str, item: Item, claims: Spool) -> None:
        owner = str(item.get(Guard.owner.attr_name, {}).get("S", ""))
        reservation = reservation_of(item)
        if reservation is None:
            claims.add(key, _BY_GUARD, owner)
        else:
            claims.add(key, _BY_RESERVATION, owner, reservation)

    def _claim_by_user(self, pk: str, item: Item, claims: Spool, report: Report) -> None:
        report.users += 1
        unusable = None
        for stored_name, name in self.names.items():
            try:
                key = key_carried(self.unique, name, item)
            except ValueError:
                unusable = stored_name
            else:
                if key is not None:
                    claims.add(key, _BY_USER, pk)
            if noted := reservation_noted(self.unique, name, item):
                claims.add(noted[0], _BY_WAITING, pk, noted[1])
        if unusable is not None:
            report.note_unusable(pk, unusable)

    def settle(self, claims: Spool, report: Report) -> None:
        """Confirm what the claims make suspect, repair it if that is asked for, and report it."""
        suspects = self._suspects(claims)
        with CountingPool(self.sizes.confirm_threads) as pool:
            # A pool takes all that it is given at once, so it is given a little at a time.
            while batch := list(islice(suspects, self.sizes.confirm_ahead)):
                for findings in pool.map(self._settled, batch):
                    for finding, repaired in findings:
                        report.note(finding, repaired=repaired)
                self.progress("Suspects confirmed", len(batch))

    def _suspects(self, claims: Spool) -> Iterator[_Suspect]:
        for key, claims_of_key in groupby(claims, key=itemgetter(0)):
            first = list(islice(claims_of_key, self.sizes.users_together))
            if _agree(first):
                continue
            yield _Suspect(key, _users_of(first))
            anchor = first[-1][2]
            while more := list(islice(claims_of_key, self.sizes.users_together)):
                if rivals := [pk for pk in _users_of(more) if pk != anchor]:
                    yield _Suspect(key, rivals, anchor)

    def _settled(self, suspect: _Suspect) -> list[tuple[Finding, bool]]:
        """What is wrong, each with whether it was repaired; nothing if it was a passing sight."""
        if suspect.anchor is not None:
            return [(rival, False) for rival in self._rivals(suspect.anchor, suspect)]
        for _attempt in range(MEND_ATTEMPTS):
            snapshot = Snapshot.read(self.unique, suspect.key, suspect.pks)
            findings = snapshot.findings(self.oldest_by)
            if not (self.repair and findings and findings[0].mendable):
                return [(finding, False) for finding in findings]
            try:
                snapshot.mend(findings[0])
            except ChangedMeanwhile:
                continue
            return [(finding, finding is findings[0]) for finding in findings]
        snapshot = Snapshot.read(self.unique, suspect.key, suspect.pks)
        return [(finding, False) for finding in snapshot.findings(self.oldest_by)]

    def _rivals(self, anchor: str, suspect: _Suspect) -> list[Finding]:
        """Which users, of those beyond the first reading, carry the value without its guard.

        What becomes of the guard, the first reading decides.
        """
        snapshot = Snapshot.read(self.unique, suspect.key, [anchor, *suspect.pks])
        return [
            Finding("foreign", finding.pk, finding.key, mendable=False)
            for finding in snapshot.findings()
            if finding.kind != "orphaned" and finding.pk in suspect.pks
        ]


def _agree(claims: list[list[str]]) -> bool:
    """Whether a guard and one user name each other, and nobody else has to do with it."""
    waiting = [names for _key, by, *names in claims if by == _BY_WAITING]
    others = [(by, names) for _key, by, *names in claims if by != _BY_WAITING]
    kinds = [by for by, _names in others]
    if kinds == [_BY_RESERVATION]:
        return others[0][1] in waiting
    return not kinds or (kinds == [_BY_GUARD, _BY_USER] and others[0][1] == others[1][1])


def _users_of(claims: list[list[str]]) -> list[str]:
    """Whom a guard names, and who carries its value."""
    pks = (pk for _key, by, pk, *_id in claims if by != _BY_WAITING)
    return list(dict.fromkeys(pk for pk in pks if is_user_key(pk)))
