"""Checks and repairs the guard items of a model: each item has its own, each belongs to an item.

The engine is `checking.findings`. An item claims the guard items of its values, a guard item claims
the owner that it names: a correct guard item is two claims that name one item. Everything else is
suspect. It is confirmed and repaired by `checking.snapshots`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter

from dynamo._internal.checking.findings import (
    DEFAULT_SIZES,
    Progress,
    Sizes,
    Spool,
    confirmed,
    scanned,
    unseen,
)
from dynamo._internal.checking.snapshots import (
    Fault,
    Finding,
    Snapshot,
    claims_of,
    is_owner,
    is_searchable,
    names_in,
)
from dynamo._internal.items import Item, text_of
from dynamo.models import Model
from dynamo.unique.declarations import REQUEST_ID, SEPARATOR
from dynamo.unique.guarding import GUARD_ATTRIBUTES, OWNER, is_reserved

#: How often a repair is tried if the items change in between.
REPAIR_ATTEMPTS = 2

_Suspect = tuple[str, list[str], bool]
"""A guard item's key, users to read along with it, and whether these decide who gets it.

If there are more users than one read takes, the others follow in suspects that do not decide.
"""


class Report:
    """What a check found. `users` and `guards` count items, `repaired` counts findings.

    `shared` counts the findings that no repair can settle: two users have the same value, and this
    one does not have its guard item.

    `unsearchable` counts the guard items that no search finds, because they were written before
    their values were searchable. That is not an error. A repair counts `made_searchable` instead.

    `unusable` counts the users with a unique attribute that is stored in an unusable form (absent
    though required, not a text, impossible to normalize); `unusable_example` is the primary key of
    one, with the attribute's stored name.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._counts = Counter[Fault]()
        self.users = 0
        self.guards = 0
        self.repaired = 0
        self.shared = 0
        self.unsearchable = 0
        self.made_searchable = 0
        self.unusable = 0
        self.unusable_example: tuple[str, str] | None = None

    def note(self, finding: Finding, *, repaired: bool) -> None:
        """Add a confirmed finding."""
        if finding.fault == "unsearchable":
            self.made_searchable += repaired
            return
        shared = not finding.repairable
        outcome = "repaired" if repaired else "shared" if shared else ""
        self._spool.add(finding.fault, finding.key, finding.pk, outcome)
        self._counts[finding.fault] += 1
        self.repaired += repaired
        self.shared += shared

    def count(self, fault: Fault) -> int:
        """The number of these findings, repaired ones included."""
        return self._counts[fault]

    def findings(self, fault: Fault) -> Iterator[tuple[str, str, str]]:
        """These findings, sorted by key: user's pk, guard item's key, outcome.

        The outcome is `repaired`, `shared` (no repair can settle it), or empty.
        """
        for found, key, pk, outcome in self._spool:
            if found == fault:
                yield pk, key, outcome

    @property
    def still_wrong(self) -> int:
        """The number of findings that were not repaired."""
        return self._counts.total() - self.repaired


@contextmanager
def check_guards(
    model: type[Model],
    *,
    repair: bool = False,
    oldest_by: str | None = None,
    progress: Progress = unseen,
    sizes: Sizes = DEFAULT_SIZES,
) -> Iterator[Report]:
    """Compare all items with all guard items. Yields the report, which is valid in the block.

    With `repair`, missing guard items are written, unsearchable ones completed, orphaned ones
    deleted (also those that version 0.1 reserved, which are not reported otherwise), and those of
    users that do not have the value are given to the one user that has. Two users with the same
    value are reported and not changed. If neither has a guard item, the oldest one gets it, by the
    attribute stored as `oldest_by` (a time as text). Guard items of attributes that are not
    declared are not changed, nor is any item that is neither an item nor a guard item of the model.

    Costs a scan: about 1 request per MB and 1 read unit per 4 KB of all that is stored. Each
    suspect costs 1 request and 2 read units for each of its items, each repair 1 request and 4 to 6
    write units. Uses about 260 bytes of disk for each guard item and each user's value.

    Raises:
        Unavailable, Rejected, TableMissing: see `client.sending`; repairs stay.
    """
    with Spool() as spool:
        report = Report(spool)
        with Spool() as claims:
            check = _Check(model, repair, oldest_by, progress, sizes, claims, report)
            check.collect()
            check.confirm()
        yield report


@dataclass(frozen=True)
class _Check:
    model: type[Model]
    repair: bool
    oldest_by: str | None
    progress: Progress
    sizes: Sizes
    claims: Spool
    report: Report

    def collect(self) -> None:
        """Scan the table, or both, and keep what each item claims."""
        guards = self.model._guard_table()
        names = [*self.model.key_attribute_names(), guards.key_name, *GUARD_ATTRIBUTES]
        attributes = dict.fromkeys([*names, *self._stored_names(), REQUEST_ID])
        for table in sorted({self.model.table(), guards.name}):
            for item in scanned(table, attributes, self.progress, self.sizes):
                guard_key = text_of(item, guards.key_name) if table == guards.name else ""
                if guard_key and names_in(self.model, guard_key):
                    self._claim_owner(guard_key, item)
                elif table == self.model.table() and not self._is_strange(guard_key, item):
                    self._claim_guards(item)

    def _stored_names(self) -> list[str]:
        return [name for each in self.model._unique_keys for name in each.stored_names]

    def _claim_owner(self, guard_key: str, guard: Item) -> None:
        self.report.guards += 1
        if not is_reserved(guard):
            is_found = is_searchable(self.model, guard_key, guard)
            self.claims.add(guard_key, text_of(guard, OWNER), *([] if is_found else ["unfound"]))
        elif self.repair:
            # It keeps nothing, so it is not an error; a repair removes it.
            self.claims.add(guard_key, "")

    def _claim_guards(self, item: Item) -> None:
        pk = self.model.owner_of(item)
        keys, unusable = claims_of(self.model, item)
        self.report.users += 1
        for key in keys:
            self.claims.add(key, pk)
        if unusable:
            self.report.unusable += 1
            self.report.unusable_example = self.report.unusable_example or (pk, unusable)

    def _is_strange(self, key: str, item: Item) -> bool:
        """Whether it is the guard item of an attribute that is no longer declared, or the like."""
        return SEPARATOR in key and not any(name in item for name in self._stored_names())

    def confirm(self) -> None:
        """Confirm suspects, repair them if asked for, and report them."""
        for findings in confirmed(self._suspects(), self._confirmed, self.progress, self.sizes):
            for finding, repaired in findings:
                self.report.note(finding, repaired=repaired)

    def _suspects(self) -> Iterator[_Suspect]:
        for key, claims in groupby(self.claims, key=itemgetter(0)):
            decides = True
            # One read takes the guard item, its owner, and these.
            while entries := list(islice(claims, self.sizes.together - 2)):
                some = [pk for _key, pk, *_unfound in entries]
                is_unfound = any(unfound for _key, _pk, *unfound in entries)
                if len(some) == 2 and some[0] == some[1] and not (is_unfound and self.repair):
                    self.report.unsearchable += is_unfound
                else:
                    pks = [pk for pk in dict.fromkeys(some) if is_owner(self.model, pk)]
                    yield key, pks, decides
                decides = False

    def _confirmed(self, suspect: _Suspect) -> list[tuple[Finding, bool]]:
        """What is wrong, each with whether it was repaired; nothing if it no longer is."""
        key, pks, decides = suspect
        attempts = REPAIR_ATTEMPTS if self.repair and decides else 0
        while True:
            snapshot = Snapshot.read(self.model, key, pks)
            findings = snapshot.findings(self.oldest_by)
            if not decides:
                return [
                    (replace(finding, fault="foreign", repairable=False), False)
                    for finding in findings
                    if finding.fault in {"missing", "foreign"} and finding.pk in pks
                ]
            if not (attempts and findings and findings[0].repairable):
                return [(finding, False) for finding in findings]
            attempts -= 1
            if snapshot.repair(findings[0]):
                return [(finding, finding is findings[0]) for finding in findings]
