"""The register of operations, and the contract of each: result, cost, refusals, repetition.

Here are those of the library, in `tests.site_operations` those of the site. `tests.faults.matrix`
tests each contract, without faults and with them; `tests.interleavings` runs them at once.
"""

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from typing import Any

from dynamo import (
    DecimalAttribute,
    IntegerAttribute,
    Model,
    TextAttribute,
    Transaction,
    Unique,
    casefolded,
)
from dynamo.client.bulk import write_batches
from dynamo.client.plain import PlainModel
from dynamo.client.writes import Write
from dynamo.model.objects import WRITE_ID
from locks.exceptions import LeaseLost, LockTaken, UnknownLock
from locks.leases import Lease
from locks.lock import claim_once
from locks.models import LockItem
from locks.registry import break_lock
from sequences import DamagedSeries, RequestIdReused, SeriesStarted, start_series
from sequences.models import Counter
from tests.emptying import empty
from tests.items import Item, remove_item, scanned, stored_items
from tests.locks.items import put, stored, taken
from tests.numbered import Entry, Ticket, forget_all, remove_counter, ticket
from tests.requests import Requests, told

TRANSACTION, UPDATE, PUT, DELETE = "TransactWriteItems", "UpdateItem", "PutItem", "DeleteItem"

Stored = dict[tuple[str, str], Item]
"""Every item of some tables, by its table and key."""


def _started(_none: object, *, at: int, write: Transaction | None = None) -> None:
    start_series(Ticket, "tickets", at=at, write=write)


def nothing() -> None:
    """Nothing is stored before."""


#: The operation succeeds although another call happened before it.
DONE = "done"

Refusals = Mapping[str, tuple[Callable[[Any], object], type[Exception] | str | None]]
"""A call that happens after `given`, and the outcome of the operation: an error, DONE, or None.

None: the operation has nothing to do. Only DONE means that it has written.
"""


@dataclass(frozen=True, eq=False)
class Operation:
    """`act` is the operation, on what `given` stores and returns.

    It sends the requests `reads` and then one of `api`, which cost `units` together. It writes to
    the tables of `models`. If it takes `write`, it joins the transaction of its caller.

    `again` is what the same call does a second time: "same" if it finds that it was done, "another"
    if it makes another change (of a hash, time or session), or the error that it raises.
    `assert_sound` checks the rules that hold for everything stored. Afterwards the caller's object
    is as it is stored; if not `is_in_hand`, only after a commit of the caller's own transaction.

    One that `counts` is not sent again if its reply may be lost. If it `needs_token`, nothing else
    recognizes it after a lost reply. `faults` are those of engines on which it cannot be tested.
    """

    name: str
    api: str
    act: Callable[..., object]
    models: Sequence[type[PlainModel]]
    given: Callable[[], Any] = nothing
    again: str | type[Exception] = "same"
    assert_sound: Callable[[], None] = nothing
    units: float = 1
    reads: Sequence[str] = ()
    refusals: Refusals = field(default_factory=dict)
    is_in_hand: bool = True
    counts: bool = False
    needs_token: bool = False
    faults: Mapping[str, str] = field(default_factory=dict)

    @property
    def joins(self) -> bool:
        """Whether it takes a transaction of its caller."""
        parameters = inspect.signature(self.act).parameters
        return any(
            key == "write" or kind.kind is kind.VAR_KEYWORD for key, kind in parameters.items()
        )

    def stored(self) -> Stored:
        """Everything in its tables."""
        return {
            _place(model, item): item for model in self.models for item in scanned(model.table())
        }

    def empty(self) -> None:
        """Empty its tables."""
        empty(*(model.table() for model in self.models))
        forget_all()

    def restore(self, before: Stored, now: Stored | None = None) -> None:
        """Let its tables have the items `before` and no others; `now` they have these."""
        now = self.stored() if now is None else now
        for model in self.models:
            puts = [
                {"PutRequest": {"Item": item}}
                for (table, key), item in before.items()
                if table == model.table() and now.get((table, key)) != item
            ]
            deletions = [
                {
                    "DeleteRequest": {
                        "Key": {name: item[name] for name in model.key_attribute_names()}
                    }
                }
                for (table, key), item in now.items()
                if table == model.table() and (table, key) not in before
            ]
            write_batches(model.table(), [*puts, *deletions])
        forget_all()

    def assert_in_hand(self, given: Any, result: Any) -> None:
        """The item that the caller has afterwards is what is stored, if it was not deleted."""
        for item in (result[0] if isinstance(result, tuple) else result, given):
            if isinstance(item, Model):
                assert self.stored().get(_place(type(item), item.serialize())) in (
                    None,
                    item.stored,
                )
                return


def _place(model: type[PlainModel], item: Item) -> tuple[str, str]:
    return model.table(), json.dumps([item[name] for name in model.key_attribute_names()])


@cache
def undisturbed(operation: Operation) -> tuple[list[Any], object, Requests]:
    """What the operation stores (as `plain`), returns and sends without faults."""
    given = operation.given()
    before = operation.stored()
    sent = Requests()
    with told(sent.note):
        result = operation.act(given)
    after = operation.stored()
    assert after != before
    operation.empty()
    return plain(after, before), result, sent


#: Values that are drawn at random.
_DRAWN = [
    re.compile(r"^\w+\$.*"),  # the hash of a password
    re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}"),
    re.compile(r"^[\w-]{22}$"),
]
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+|^\d{10,}(\.\d+)?$")


def plain(after: Stored, before: Stored) -> list[Any]:
    """What is stored, in a form that is equal for equal runs.

    A random value becomes a word that says whether it was stored before. A version becomes the
    number of changes since then.
    """
    known = json.dumps([*before.values()], default=str)
    return sorted(
        [table, *_plain(_counted(item, before.get((table, key), {})), known)]
        for (table, key), item in after.items()
    )


def _counted(item: Item, before: Mapping[str, Any]) -> Item:
    now, then = (int(entry.get("version", {}).get("N", 0)) for entry in (item, before))
    if WRITE_ID in item:
        # Random, too, and as short as other texts.
        is_kept = item[WRITE_ID] == before.get(WRITE_ID)
        item = item | {WRITE_ID: "<kept>" if is_kept else "<drawn>"}
    if not now:
        return item
    # Another item with the same key has another random one.
    return item | {"version": {"N": str(now - then) if 0 <= now - then < 1_000 else "new"}}


def _plain(value: Any, known: str) -> Any:
    if isinstance(value, dict):
        # As a list, because keys can be drawn at random, too.
        return sorted(
            ([_plain(name, known), _plain(item, known)] for name, item in value.items()),
            key=json.dumps,
        )
    if isinstance(value, list):
        return [_plain(item, known) for item in value]
    if isinstance(value, str):
        for drawn in _DRAWN:
            value = drawn.sub(lambda one: "<kept>" if one[0] in known else "<drawn>", value)
        value = _TIME.sub("<time>", value)
    return value


def said(result: object) -> str | None:
    """The result of a call, equal for equal runs; None for a stored item or a random value."""
    if isinstance(result, (bool, Enum, tuple, Exception)) or is_dataclass(result):
        return re.sub(r"datetime\([^)]*\)|[0-9a-f-]{36}|0x\w+", "…", repr(result))
    return None


# The library ------------------------------------------------------------------------------------


class Member(Model):
    class Meta:
        table_name = "tests-registered-members"

    email = TextAttribute()
    name = TextAttribute(null=True)
    visits = IntegerAttribute(default=0)

    unique_email = Unique("email", normalize=casefolded)


class Job(Model):
    class Meta:
        table_name = "tests-jobs"


class Other(Model):
    """What the caller of an operation writes in the same transaction."""

    class Meta:
        table_name = "tests-others"

    text = TextAttribute(default="")


class Plate(Model):
    """Its key and its unique value are numbers, which have several spellings."""

    class Meta:
        table_name = "tests-registered-plates"

    rack = TextAttribute(hash_key=True)
    place = DecimalAttribute(range_key=True)
    number = DecimalAttribute()

    unique_number = Unique("number")


class PlateGuard(PlainModel):
    class Meta:
        table_name = "tests-registered-plates-guards"

    pk = TextAttribute(hash_key=True)


def ann(_none: None = None, **more: Any) -> Member:
    return Member.create(**{"email": "ann@example.org", "name": "Ann"} | more)


def _renamed() -> Member:
    member = ann()
    member.name = "Bea"
    return member


def _delete(member: Member) -> None:
    Member.get(member.pk).delete()


def _create_again(member: Member) -> None:
    _delete(member)
    ann(pk=member.pk)


STALE: Refusals = {
    "changed since": (lambda member: Member.get(member.pk).change(visits=9), Member.Stale),
    "deleted since": (_delete, Member.Stale),
    "deleted since and created again": (_create_again, Member.Stale),
}


def _assert_guards_match() -> None:
    items = stored_items(Member.table())
    guards = {key: item.pop("owner")["S"] for key, item in items.items() if "owner" in item}
    members = {f"email#{i['email']['S'].lower()}": pk for pk, i in items.items() if "email" in i}
    assert guards == members


def _same_since(**values: Any) -> Refusals:
    """Another copy made the same change: values cannot tell whose it is."""
    return {"the same since": (lambda member: Member.get(member.pk).change(**values), Member.Stale)}


def _plate(_none: None = None, place: str = "-0", number: str = "1E+38", **more: Any) -> Plate:
    return Plate.create(rack="a", place=Decimal(place), number=Decimal(number), **more)


def _assert_plates_match() -> None:
    guards = {
        Decimal(key.removeprefix("number#")): Decimal(json.loads(item["owner"]["S"])[1]["N"])
        for key, item in stored_items(PlateGuard.table()).items()
        if key.startswith("number#")
    }
    assert guards == {plate.number: plate.place for plate in Plate.scan()}


def _insist(item: Model, **write: Any) -> None:
    item.delete(missing_ok=False, **write)


def _member(name: str, api: str, act: Callable[..., object], **more: Any) -> Operation:
    values = {"given": ann, "units": 4 if api == TRANSACTION else 1, "refusals": STALE} | more
    sound = _assert_guards_match
    return Operation(f"Model.{name}", api, act, [Member], assert_sound=sound, **values)


def _numbered(name: str, units: int, act: Callable[..., object], **more: Any) -> Operation:
    faults = {"moto": "stores numbers of 39 digits and answers 500 to the next Scan"}
    values = {"given": _plate, "assert_sound": _assert_plates_match, "faults": faults} | more
    models = [Plate, PlateGuard]
    return Operation(f"Model.{name}", TRANSACTION, act, models, units=units, **values)


def _lease() -> Lease:
    return taken("a")


def _claim(_given: Any = None) -> None:
    assert claim_once("a")


def _break(_given: Any, **write: Any) -> object:
    return break_lock("a", **write)


def _take_over(_lease: Lease) -> None:
    theirs = {"ownerName": {"S": "another"}, "recordVersionNumber": {"S": "theirs"}}
    put("a", **stored("a") | theirs)


def _remove(_lease: Lease) -> None:
    remove_item(LockItem.table(), key="a")


NOT_HELD: Refusals = {
    "broken since": (_break, LeaseLost),
    "removed since": (_remove, LeaseLost),
    "taken by another since": (_take_over, LeaseLost),
}


def _noted(_none: None, request_id: str | None = None) -> object:
    """Issue a ticket with a further write, whose condition is false once it is written."""
    absent = Entry.series.does_not_exist()
    note = Write.put(Entry("notes", 1), absent, otherwise=KeyError("notes"))
    return ticket("tickets", also=[note], request_id=request_id)


def _issue_and_change(member: Member) -> object:
    write = Transaction()
    member.change(visits=5, write=write)
    return ticket("tickets", also=write, request_id="r")


def _lose_counter(_none: None) -> None:
    ticket("tickets")
    remove_counter(Ticket, "tickets")
    forget_all()


def _lock(name: str, api: str, act: Callable[..., object], **more: Any) -> Operation:
    return Operation(name, api, act, [LockItem], **more)


LIBRARY = [
    _member(
        "create",
        TRANSACTION,
        ann,
        given=nothing,
        again=Member.Taken,
        refusals={"the value is taken": (lambda _none: ann(email="ANN@example.org"), Member.Taken)},
    ),
    _member(
        "create for a request",
        TRANSACTION,
        partial(ann, request_id="r"),
        given=nothing,
        refusals={
            "the value is taken": (ann, Member.Taken),
            "the request had other values": (
                lambda _none: ann(name="Bea", request_id="r"),
                Member.RequestIdReused,
            ),
            "the item changed since": (lambda _none: ann(request_id="r").change(visits=9), None),
        },
    ),
    _member(
        "change",
        UPDATE,
        partial(Member.change, name="Bea", email="ANN@example.org"),
        refusals=STALE | _same_since(name="Bea", email="ANN@example.org"),
    ),
    _member(
        "change to nothing",
        UPDATE,
        partial(Member.change, visits=5, name=None),
        refusals=STALE | _same_since(visits=5, name=None),
    ),
    _member(
        "change of a unique value",
        TRANSACTION,
        partial(Member.change, email="b@example.org"),
        units=6,
        refusals=STALE
        | _same_since(email="b@example.org")
        | {"taken": (lambda _ann: ann(email="B@example.org"), Member.Taken)},
    ),
    _member("save", UPDATE, Member.save, given=_renamed, refusals=STALE | _same_since(name="Bea")),
    _member(
        "delete", TRANSACTION, Member.delete, refusals=STALE | {"deleted since": (_delete, None)}
    ),
    _member(
        "change and count",
        UPDATE,
        partial(Member.change, name="Bea", add={"visits": 1}),
        refusals=STALE | _same_since(name="Bea", add={"visits": 1}),
    ),
    _member(
        "count",
        UPDATE,
        partial(Member.change, add={"visits": 1}),
        again="another",
        counts=True,
        refusals=STALE | {"changed since": (STALE["changed since"][0], DONE)},
    ),
    _member("delete, not missing", TRANSACTION, _insist, again=Member.Stale, needs_token=True),
    Operation(
        "Model.delete without Unique, not missing",
        TRANSACTION,
        _insist,
        [Job],
        Job.create,
        again=Job.Stale,
        units=2,
        needs_token=True,
        refusals={"deleted since": (lambda job: Job.get(job.pk).delete(), Job.Stale)},
    ),
    _numbered(
        "create with numbers",
        6,
        partial(_plate, request_id="r"),
        given=nothing,
        refusals={
            "the value is taken": (
                lambda _none: _plate(place="1", number=f"1{'0' * 38}"),
                Plate.Taken,
            ),
            "the key is used": (
                lambda _none: _plate(place="0E+5", number="1"),
                Plate.AlreadyExists,
            ),
            "the request had other values": (
                partial(_plate, number="1", request_id="r"),
                Plate.RequestIdReused,
            ),
        },
    ),
    _numbered(
        "change of a unique number",
        6,
        lambda plate, **write: plate.change(number=Decimal("-0.0"), **write),
        refusals={
            "the same since": (
                lambda _plate: Plate.get("a", Decimal(0)).change(number=Decimal(0)),
                Plate.Stale,
            ),
            "taken": (lambda _given: _plate(place="1", number="0"), Plate.Taken),
        },
    ),
    _numbered(
        "delete with numbers",
        4,
        Plate.delete,
        refusals={"deleted since": (lambda _given: Plate.get("a", Decimal(0)).delete(), None)},
    ),
    Operation(
        "sequences.issue",
        TRANSACTION,
        lambda _none: ticket("tickets", request_id="r"),
        [Ticket, Counter],
        units=7,
        reads=["GetItem"],
        refusals={
            "the request had other contents": (
                lambda _none: ticket("tickets", request_id="r", subject="Other"),
                RequestIdReused,
            ),
            "the counter is lost": (_lose_counter, DamagedSeries),
        },
    ),
    Operation(
        "sequences.start_series",
        UPDATE,
        partial(_started, at=1001),
        [Counter, Ticket],
        refusals={
            "an item since": (lambda _none: ticket("tickets"), SeriesStarted),
            "another start": (partial(_started, at=2), SeriesStarted),
            "the same start": (partial(_started, at=1001), None),
        },
    ),
    Operation(
        "sequences.issue with a further write",
        TRANSACTION,
        partial(_noted, request_id="r"),
        [Ticket, Counter, Entry],
        units=9,
        reads=["GetItem"],
        refusals={"the further write is refused": (_noted, KeyError)},
    ),
    Operation(
        "sequences.issue with a change",
        TRANSACTION,
        _issue_and_change,
        [Ticket, Counter, Member],
        ann,
        units=9,
        reads=["GetItem"],
        refusals={
            "changed since": STALE["changed since"],
            "the same since": (lambda member: Member.get(member.pk).change(visits=5), Member.Stale),
        },
    ),
    Operation(
        "sequences.issue with a further write and no request id",
        TRANSACTION,
        _noted,
        [Ticket, Counter, Entry],
        again=KeyError,
        units=9,
        reads=["GetItem"],
    ),
    _lock(
        "Lock.acquire",
        UPDATE,
        lambda _none: taken("a", wait_seconds=0),
        again="another",
        refusals={"held": (lambda _none: _lease(), LockTaken), "claimed": (_claim, LockTaken)},
    ),
    _lock(
        "Lease.renew",
        UPDATE,
        Lease.renew,
        given=_lease,
        again="another",
        refusals=NOT_HELD | {"released": (Lease.release, LeaseLost)},
    ),
    _lock("Lease.release", UPDATE, Lease.release, given=_lease, refusals=NOT_HELD),
    _lock(
        "Lease.release and remove",
        DELETE,
        lambda lease: lease.release(remove=True),
        given=_lease,
        refusals=NOT_HELD | {"removed since": (_remove, None)},
    ),
    _lock(
        "claim_once",
        PUT,
        lambda _none: claim_once("a"),
        again="another",
        refusals={"claimed": (_claim, None), "released": (lambda _none: _lease().release(), None)},
    ),
    _lock(
        "break_lock",
        UPDATE,
        _break,
        given=_lease,
        units=2,
        reads=["GetItem"],
        refusals={"released": (Lease.release, None), "removed": (_remove, UnknownLock)},
    ),
    _lock(
        "break_lock of a claim",
        DELETE,
        _break,
        given=_claim,
        again=UnknownLock,
        units=2,
        reads=["GetItem"],
    ),
]
