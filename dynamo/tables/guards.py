"""Checks and repairs the guard items of a model.

`tables.findings` has the helpers of such checks. An item claims the guard items of its values, and
a guard item claims the owner that it names. A guard item is correct if both claims name the same
item. Every other claim is suspect, and a `Snapshot` confirms and repairs it.

Items are examined as DynamoDB sends them, not as objects, because a damaged item cannot be read as
an object and must be reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby, islice
from operator import and_, itemgetter
from typing import Literal, Self, cast

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path

from dynamo.client.sending import write_one
from dynamo.client.writes import Write
from dynamo.exceptions import Stale
from dynamo.model.base import Model
from dynamo.model.unique import GUARD_ATTRIBUTES, OWNER, SEPARATOR, UniqueKey
from dynamo.tables import findings
from dynamo.tables.findings import Findings, Progress, Spool, confirmed, scanned, unseen
from dynamo.transactions import Transaction, read_together
from dynamo.wire.types import Address, Item, Request
from dynamo.wire.updates import conditional
from dynamo.wire.values import text_of

#: What can be wrong with a guard item.
#: missing: an item has the value, but its guard item is absent.
#: orphaned: there is a guard item, and no item has the value.
#: foreign: an item has the value, and the guard item belongs to another item.
#: unsearchable: searches do not find it, because it was written before its value was searchable.
Fault = Literal["missing", "orphaned", "foreign", "unsearchable"]

#: An entry of the list: the item's key, the guard item's key, and the outcome, which is `repaired`,
#: `shared` (no repair can settle it), or empty.
Found = tuple[str, str, str]

#: The findings that are errors.
FAULTS: tuple[Fault, ...] = ("missing", "orphaned", "foreign")


@dataclass(frozen=True)
class Finding:
    """One error: in the guard item `key`, for the item with the key `pk` (`Model.owner_of`).

    For an orphaned guard item `pk` is the owner that it names, empty if it names none. It is not
    `repairable` if two items have the same value, because a person decides which one keeps it.
    """

    fault: Fault
    pk: str
    key: str
    repairable: bool


def unique_of(model: type[Model], guard_key: str) -> UniqueKey:
    """The declared `Unique` of the guard item."""
    return next(item for item in model.guarded() if guard_key.startswith(item.prefix))


def is_searchable(model: type[Model], guard_key: str, guard: Item) -> bool:
    """Whether searches find the stored `guard`, if it is searchable."""
    return unique_of(model, guard_key).search_attributes(guard_key).items() <= guard.items()


def claims_of(model: type[Model], item: Item) -> tuple[list[str], str]:
    """The keys of the guard items that the stored `item` must have.

    The second value is the stored name of an attribute that cannot be compared: damaged, impossible
    to normalize, or absent though required. The name is empty if all can be compared.
    """
    keys, unusable = [], ""
    for unique in model.guarded():
        try:
            key = unique.key(item)
        except ValueError:
            unusable = unique.stored_names[0]
            continue
        if key is not None:
            keys.append(key)
        elif not any(attribute.null for attribute in unique.attributes):
            unusable = unique.stored_names[0]
    return keys, unusable


def as_read(item: Item | None, *names: str) -> Request:
    """The condition that the stored attributes are equal to those of `item`."""
    conditions: list[Condition] = [
        Path([name]) == item[name] if item and name in item else Path([name]).does_not_exist()
        for name in names
    ]
    return conditional({}, reduce(and_, conditions))


@dataclass(frozen=True)
class Snapshot:
    """The items stored at one instant under a guard item's key and the keys of `items`.

    The guard item's owner is one of `items`, if it names one.
    """

    model: type[Model]
    key: str
    guard: Item | None
    items: Mapping[str, Item | None]

    @classmethod
    def read(cls, model: type[Model], key: str, pks: Sequence[str]) -> Self:
        """Read the guard item `key`, its owner and the items `pks`.

        Costs 1 request and 2 read units per 4 KB of each item; both again if the owner is not
        one of `pks`.
        """
        wanted = list(pks)
        while True:
            addresses = [model._guard_table().address(key), *(_address(model, pk) for pk in wanted)]
            guard, *items = read_together(addresses)
            snapshot = cls(model, key, guard, dict(zip(wanted, items, strict=True)))
            if snapshot.owner is None or snapshot.owner in snapshot.items:
                return snapshot
            wanted = [*pks, snapshot.owner]

    @property
    def owner(self) -> str | None:
        """The owner of the guard item; None if there is none, or no item can have its key."""
        named = text_of(self.guard, OWNER)
        return named if is_owner(self.model, named) else None

    def _has_value(self, item: Item | None) -> bool:
        return item is not None and self.key in claims_of(self.model, item)[0]

    def findings(self, oldest_by: str | None = None) -> list[Finding]:
        """The findings. At most one of them is repairable, and it comes first.

        If several items have the value and there is no guard item, the oldest one gets it: by the
        attribute stored as `oldest_by`, a time as text, then by key.
        """
        holders = [pk for pk, item in self.items.items() if self._has_value(item)]
        if not holders:
            if self.guard is None:
                return []
            return [Finding("orphaned", text_of(self.guard, OWNER), self.key, repairable=True)]
        if self.guard is not None:
            is_found = is_searchable(self.model, self.key, self.guard)
            return [
                Finding("foreign", pk, self.key, repairable=len(holders) == 1)
                for pk in holders
                if pk != self.owner
            ] or [
                Finding("unsearchable", pk, self.key, repairable=True)
                for pk in holders
                if not is_found
            ]
        first, *others = sorted(holders, key=lambda pk: (self._age(pk, oldest_by), pk))
        return [
            Finding("missing", first, self.key, repairable=True),
            *(Finding("foreign", pk, self.key, repairable=False) for pk in others),
        ]

    def _age(self, pk: str, oldest_by: str | None) -> tuple[bool, str]:
        """Sorts the oldest first, and those of unknown age last."""
        since = (self.items[pk] or {}).get(oldest_by or "", {}).get("S")
        return since is None, since or ""

    def repair(self, finding: Finding) -> bool:
        """Repair one finding in one transaction. Returns False if an item of it has changed.

        The guard item, the value of its new owner and that of its old one must be as they were
        read; otherwise nothing is written. Costs 1 request and 4 write units, 6 if the guard item
        named another owner.
        """
        changed = Stale()
        address = self.model._guard_table().address(self.key)
        guard_as_read = as_read(self.guard, *address["Key"], *GUARD_ATTRIBUTES)
        unique = unique_of(self.model, self.key)
        if finding.fault == "orphaned":
            repair = Write(finding, "Delete", {**address, **guard_as_read}, changed)
        else:
            more = unique.guard_attributes(self.key, self.items[finding.pk] or {})
            item: Item = {**address["Key"], OWNER: {"S": finding.pk}, **more}
            put: Request = {"TableName": address["TableName"], "Item": item, **guard_as_read}
            repair = Write(finding, "Put", put, changed)
        write = Transaction()
        write.add(repair)
        for pk in self.items.keys() & {finding.pk, self.owner}:
            value = as_read(self.items[pk], *unique.stored_names)
            check: Request = {**_address(self.model, pk), **value}
            write.add(Write(check, "ConditionCheck", check, changed))
        return not write.try_commit()


def is_owner(model: type[Model], owner: str) -> bool:
    """Whether an item can have this key."""
    return model._key_of_owner(owner) is not None


def _address(model: type[Model], owner: str) -> Address:
    return {"TableName": model.table(), "Key": cast(Item, model._key_of_owner(owner))}


#: A repair is tried this many times if the items change in between.
REPAIR_ATTEMPTS = 2

#: A guard item's key, items that are read together with it, and whether these items decide who owns
#: it. If there are more items than one read takes, further suspects have the others, and do not
#: decide.
_Suspect = tuple[str, list[str], bool]


@dataclass
class Report:
    """The result of a check, sorted by key. `repaired` counts findings.

    `shared` counts the findings that no repair can settle: two items have the same value, and this
    one does not have its guard item.

    `unsearchable` counts the guard items that no search finds, because they were written before
    their values were searchable. That is not an error. A repair counts `made_searchable` instead.

    `unusable` counts the items with a unique attribute that is stored in an unusable form (absent
    though required, not a text, impossible to normalize); `unusable_example` is the primary key of
    one, with the attribute's stored name.
    """

    found: dict[Fault, Findings[Found]] = field(
        default_factory=lambda: {fault: Findings() for fault in FAULTS}
    )
    items: int = 0
    guards: int = 0
    repaired: int = 0
    shared: int = 0
    unsearchable: int = 0
    made_searchable: int = 0
    unusable: int = 0
    unusable_example: tuple[str, str] | None = None

    def note(self, finding: Finding, *, repaired: bool) -> None:
        """Add a confirmed finding."""
        if finding.fault == "unsearchable":
            self.made_searchable += repaired
            return
        shared = not finding.repairable
        outcome = "repaired" if repaired else "shared" if shared else ""
        self.found[finding.fault].add((finding.pk, finding.key, outcome))
        self.repaired += repaired
        self.shared += shared

    @property
    def still_wrong(self) -> int:
        """The number of findings that were not repaired."""
        return sum(found.count for found in self.found.values()) - self.repaired


def check_guards(
    model: type[Model],
    *,
    repair: bool = False,
    oldest_by: str | None = None,
    progress: Progress = unseen,
) -> Report:
    """Compare all items with all guard items. Returns the findings and the repairs.

    With `repair`, missing guard items are written, unsearchable ones are completed, and orphaned
    ones are deleted. A guard item of an item without the value is given to the one item with it.
    Two items with the same value are reported and not changed. If neither has a guard item, the
    oldest one gets it, by the attribute stored as `oldest_by` (a time as text). Guard items of
    attributes that are not declared are not changed. Other items of the table are not changed
    either.

    Costs a scan: about 1 request per MB and 1 read unit per 4 KB of all that is stored. Each
    suspect costs 1 request and 2 read units for each of its items, each repair 1 request and 4 to 6
    write units. Uses about 260 bytes of disk for each guard item and each item's value.

    Raises:
        Unavailable, Rejected, TableMissing: see `client.sending`. Repairs until then are kept.
    """
    with Spool() as claims:
        check = _Check(model, repair, oldest_by, progress, claims)
        check.collect()
        check.confirm()
    return check.report


def delete_guards(model: type[Model], names: str, progress: Progress = unseen) -> int:
    """Delete the guard items of a `Unique` that `model` no longer declares. Returns their number.

    `names` are the stored names of its attributes, joined by commas. Costs a scan, and 1 write unit
    for each guard item.

    Raises:
        ValueError: the model declares it.
    """
    prefix = f"{names}{SEPARATOR}"
    if prefix in model._guard_prefixes():
        raise ValueError(f"{model.__name__} declares Unique({names}).")
    guards = model._guard_table()
    deleted = 0
    for item in scanned(guards.name, (), progress):
        key = text_of(item, guards.key_name)
        is_guard = OWNER in item and item.keys() <= {guards.key_name, *GUARD_ATTRIBUTES}
        if is_guard and key.startswith(prefix):
            request: Request = {**guards.address(key), **as_read(item, OWNER)}
            deleted += bool(write_one("DeleteItem", request))
    return deleted


def delete_damaged(model: type[Model], item: Item) -> bool:
    """Delete the stored `item` with its guard items, if all its attributes are as they were read.

    The guard items of values that cannot be read are kept: `checkunique --repair` deletes them.
    Returns whether there are such values. Costs as `Model.delete`.

    Raises:
        Stale: it changed, or was deleted, since it was read.
    """
    names = {*item, *(stored_name for _name, stored_name, _attribute in model._named_attributes())}
    owner = model.owner_of(item)
    whole: Request = {**_address(model, owner), **as_read(item, *sorted(names))}
    keys, unusable = claims_of(model, item)
    with Transaction() as write:
        write.add(Write(item, "Delete", whole, model.Stale(model._noun())))
        write.add(*(model._guard_table().free(key, owner, item) for key in keys))
    return bool(unusable)


@dataclass(frozen=True)
class _Check:
    model: type[Model]
    repair: bool
    oldest_by: str | None
    progress: Progress
    claims: Spool
    report: Report = field(default_factory=Report)

    def collect(self) -> None:
        """Scan the table, or both tables, and collect the claims of the items."""
        guards = self.model._guard_table()
        names = [*self.model.key_attribute_names(), guards.key_name, *GUARD_ATTRIBUTES]
        attributes = dict.fromkeys([*names, *self._stored_names()])
        for table in sorted({self.model.table(), guards.name}):
            for item in scanned(table, attributes, self.progress):
                guard_key = text_of(item, guards.key_name) if table == guards.name else ""
                if guard_key.startswith(self.model._guard_prefixes()):
                    self._claim_owner(guard_key, item)
                elif table == self.model.table() and not self._is_strange(guard_key, item):
                    self._claim_guards(item)

    def _stored_names(self) -> list[str]:
        return [name for item in self.model.guarded() for name in item.stored_names]

    def _claim_owner(self, guard_key: str, guard: Item) -> None:
        self.report.guards += 1
        is_found = is_searchable(self.model, guard_key, guard)
        self.claims.add(guard_key, text_of(guard, OWNER), *([] if is_found else ["unfound"]))

    def _claim_guards(self, item: Item) -> None:
        pk = self.model.owner_of(item)
        keys, unusable = claims_of(self.model, item)
        self.report.items += 1
        for key in keys:
            self.claims.add(key, pk)
        if unusable:
            self.report.unusable += 1
            self.report.unusable_example = self.report.unusable_example or (pk, unusable)

    def _is_strange(self, key: str, item: Item) -> bool:
        """Whether it is neither an item nor a guard item of a declared `Unique`."""
        return SEPARATOR in key and not any(name in item for name in self._stored_names())

    def confirm(self) -> None:
        """Confirm suspects, repair them if `repair` is set, and report them."""
        for found in confirmed(self._suspects(), self._confirmed, self.progress):
            for finding, repaired in found:
                self.report.note(finding, repaired=repaired)

    def _suspects(self) -> Iterator[_Suspect]:
        for key, claims in groupby(self.claims, key=itemgetter(0)):
            decides = True
            # One read takes the guard item, its owner, and these.
            while entries := list(islice(claims, findings.TOGETHER - 2)):
                some = [pk for _key, pk, *_unfound in entries]
                is_unfound = any(unfound for _key, _pk, *unfound in entries)
                if len(some) == 2 and some[0] == some[1] and not (is_unfound and self.repair):
                    self.report.unsearchable += is_unfound
                else:
                    pks = [pk for pk in dict.fromkeys(some) if is_owner(self.model, pk)]
                    yield key, pks, decides
                decides = False

    def _confirmed(self, suspect: _Suspect) -> list[tuple[Finding, bool]]:
        """The confirmed findings, each with whether it was repaired."""
        key, pks, decides = suspect
        attempts = REPAIR_ATTEMPTS if self.repair else 0
        while True:
            snapshot = Snapshot.read(self.model, key, pks)
            found = snapshot.findings(self.oldest_by)
            if not decides:
                return [
                    (replace(finding, fault="foreign", repairable=False), False)
                    for finding in found
                    if finding.fault in {"missing", "foreign"} and finding.pk in pks
                ]
            if not (attempts and found and found[0].repairable):
                return [(finding, False) for finding in found]
            attempts -= 1
            if snapshot.repair(found[0]):
                return [(finding, finding is found[0]) for finding in found]
