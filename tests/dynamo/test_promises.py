"""A model keeps its promises: each natural call keeps the guard items right, or refuses."""

import copy
import pickle
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F, Q
from pynamodb.attributes import BinaryAttribute, MapAttribute, NumberAttribute, UnicodeSetAttribute
from pynamodb.connection import Connection
from pynamodb.transactions import TransactWrite

from dynamo import (
    AlreadyExists,
    ConditionFailed,
    DamagedItem,
    DecimalAttribute,
    IntegerAttribute,
    JSONAttribute,
    Model,
    Refused,
    RequestIdReused,
    Stale,
    Taken,
    TextAttribute,
    Transaction,
    Unavailable,
    Unique,
    casefolded,
)
from tests.faults.kinds import Answer, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.items import overwrite, stored_items
from tests.numbered import Ticket, forget_all, ticket
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class Member(Model):
    class Meta:
        table_name = "tests-promises"

    email = TextAttribute(max_length=254)
    club = TextAttribute()
    card = TextAttribute(null=True)
    visits = IntegerAttribute(default=0)

    unique_email = Unique("email", normalize=casefolded)
    unique_card = Unique("club", "card")


class Seat(Model):
    """It has a sort key, so its guard items are in a table of their own."""

    class Meta:
        table_name = "tests-seats"

    hall = TextAttribute(hash_key=True)
    row = IntegerAttribute(range_key=True)
    code: Any = BinaryAttribute(legacy_encoding=False, null=True)
    price = DecimalAttribute(null=True)

    unique_code = Unique("code")
    unique_price = Unique("hall", "price")


class Size(MapAttribute[str, Any]):
    width = NumberAttribute()


class Parcel(Model):
    class Meta:
        table_name = "tests-parcels"

    name = TextAttribute()
    tags: Any = UnicodeSetAttribute(null=True)
    size: Any = Size(null=True)
    notes = JSONAttribute(null=True)
    weight = IntegerAttribute(null=True)


def ann(**values: Any) -> Member:
    return Member.create(**{"email": "Ann@example.org", "club": "chess", **values})


def bob(**values: Any) -> Member:
    return Member.create(**{"email": "bob@example.org", "club": "chess", **values})


def guards(table: str = "tests-promises") -> dict[str, str]:
    """The owner of each guard item."""
    return {key: item["owner"]["S"] for key, item in stored_items(table).items() if "owner" in item}


# Finding and counting -----------------------------------------------------------------------------


def test_an_item_is_found_by_each_unique_value_in_any_spelling(requests_sent: Requests) -> None:
    member = ann(card="A-17")
    requests_sent.clear()

    assert Member.find(email="ANN@EXAMPLE.ORG") == member
    assert requests_sent.operations == ["GetItem", "GetItem"]
    assert Member.find(club="chess", card="A-17") == member
    with pytest.raises(Member.DoesNotExist):
        Member.find(club="chess", card="A-18")
    with pytest.raises(TypeError, match="email, club and card"):
        Member.find(card="A-17")


@pytest.mark.parametrize("stored", [{}, {"version": None}], ids=str)
def test_stale_copies_can_count_up_also_of_an_item_without_version(stored: dict[str, Any]) -> None:
    member = ann()
    if stored:
        overwrite(member, **stored)
    first, second, third, last = (Member.get(member.pk) for _ in range(4))

    first.change(add={"visits": 1})
    second.change(add={"visits": 1})
    second.change(card="A-18")  # since it counted, it is as stored
    third.change(add={"visits": 1})

    assert third.visits == 3
    assert third.stored == stored_items("tests-promises")[member.pk]
    with pytest.raises(Stale) as refused:
        last.change(card="A-19")
    assert not refused.value.is_deleted


@pytest.mark.parametrize("distance", [-1, 1 << 32])
def test_add_does_not_count_on_an_item_that_was_deleted_and_created_again(distance: int) -> None:
    member = ann()
    overwrite(member, version={"N": str(member.version + distance)})

    with pytest.raises(Stale):
        member.change(add={"visits": 1})


def test_a_condition_must_hold_for_the_stored_item(max_requests: Any) -> None:
    member = ann(visits=1)

    outdated = Member.get(member.pk)
    member.change(add={"visits": 1})

    with pytest.raises(ConditionFailed) as failed:
        outdated.change(add={"visits": -3}, condition=Member.visits >= 3)
    assert (failed.value.stored.visits, outdated.visits) == (2, 1)
    failed.value.stored.change(visits=1)  # it has the version that is stored
    member.refresh()

    with max_requests(1):
        member.change(add={"visits": -1}, condition=Member.visits >= 1)
    assert member.visits == 0


# What was assigned and not saved ------------------------------------------------------------------


def _change_beside_another_item(member: Member) -> None:
    with Transaction() as write:
        member.change(add={"visits": 1}, write=write)
        bob(write=write)


@pytest.mark.parametrize(
    "write",
    [
        lambda m: m.change(visits=1),
        lambda m: m.change(visits=0),
        lambda m: m.change(club="go"),
        lambda m: m.change(add={"visits": 1}),
        _change_beside_another_item,
        lambda m: (setattr(m, "visits", 1), m.save(update_fields=["visits"])),
    ],
)
def test_assignments_that_a_write_leaves_out_can_still_be_saved(
    write: Callable[[Member], Any],
) -> None:
    member = ann(card="A-17")
    member.card, member.email = None, "new@example.org"

    write(member)

    assert (member.card, member.email) == (None, "new@example.org")
    assert (Member.get(member.pk).card, Member.get(member.pk).email) == ("A-17", "Ann@example.org")
    member.save()
    assert member.stored == stored_items("tests-promises")[member.pk]
    assert Member.find(email="new@example.org").card is None


def test_an_assignment_before_the_commit_can_still_be_saved() -> None:
    with Transaction() as write:
        member = ann(write=write)
        member.card = "A-17"

    assert (member.card, Member.get(member.pk).card) == ("A-17", None)
    member.save()
    assert Member.get(member.pk).card == "A-17"


def test_a_change_replaces_what_was_assigned_to_the_same_attribute() -> None:
    member = ann(card="A-17")

    for card in ("A-18", "A-18", None):
        member.card = "typed"
        member.change(card=card)
        assert member.card == card


def test_what_others_wrote_is_not_taken_for_an_assignment() -> None:
    parcel = Parcel.create(name="one", notes={"a": 1}, tags={"b", "a"})
    overwrite(parcel, notes={"S": '{"a":    1}'})
    copy_of_it = Parcel.get(parcel.pk)
    parcel.refresh()
    parcel.change(notes={"a": 2}, tags=None)
    copy_of_it.name = "two"

    copy_of_it.change(add={"weight": 1})
    copy_of_it.save()

    read = Parcel.get(parcel.pk)
    assert (read.name, read.notes, read.tags) == ("two", {"a": 2}, None)


# Refusals -----------------------------------------------------------------------------------------


def test_all_taken_values_are_reported_in_one_error_and_nothing_is_written() -> None:
    ann(card="A-17")
    before = stored_items("tests-promises")

    with pytest.raises(Member.Taken) as refused:
        Member.create(email="ANN@example.org", club="chess", card="A-17")

    assert refused.value.uniques == [("email",), ("club", "card")]
    assert refused.value.values == {"email": "ANN@example.org", "club": "chess", "card": "A-17"}
    assert str(refused.value) == (
        "Another member has the email ANN@example.org and the club chess with the card A-17."
    )
    assert stored_items("tests-promises") == before


@pytest.mark.parametrize(
    "write", [Member.save, lambda m: m.change(visits=1), lambda m: m.change(add={"visits": 1})]
)
def test_a_deleted_item_is_stored_again_by_insert_only(write: Callable[[Member], Any]) -> None:
    member = ann()
    other = Member.get(member.pk)
    other.card = "A"
    member.delete()

    for item in (member, other):
        with pytest.raises(Stale) as refused:
            write(item)
        assert refused.value.is_deleted
    assert stored_items("tests-promises") == {}

    member.insert()
    member.save()
    assert list(Member.scan()) == [member]


def test_a_missing_value_is_refused_before_a_request_is_sent(requests_sent: Requests) -> None:
    with pytest.raises(ValueError, match="club"):
        Member.create(email="ann@example.org")
    with pytest.raises(ValueError, match="email"):
        Member.create(email=None, club="chess")
    with pytest.raises(ValueError, match="request id must not be empty"):
        ann(request_id=" ")
    assert requests_sent.operations == []


def _with_pynamodb(verb: str) -> Callable[[Member], None]:
    def call(member: Member) -> None:
        with TransactWrite(connection=Connection()) as write:
            getattr(write, verb)(member)

    return call


def _in_transaction(verb: str, *arguments: Any) -> Callable[[Member], None]:
    def call(member: Member) -> None:
        with Transaction() as write:
            getattr(write, verb)(member, *arguments, Member.pk.exists(), otherwise=Stale())

    return call


NO_GUESTS = Member.visits == 0
UNKNOWN = "Member has no attribute cart. .*: card, club, email"

#: Calls that would write without guard items or version, and a part of the advice in their error.
RAW_WRITES: dict[str, tuple[Callable[[Member], Any], str]] = {
    "update": (lambda m: m.update(actions=[Member.email.set("bob@example.org")]), "change"),
    "batch_write": (lambda _m: Member.batch_write(), "create"),
    "write.put": (_in_transaction("put"), "create"),
    "write.update": (_in_transaction("update", [Member.card.set("A")]), "change"),
    "write.delete": (_in_transaction("delete"), "delete"),
    **{
        f"write.{verb} alone": (lambda m, verb=verb: getattr(Transaction(), verb)(m), advice)
        for verb, advice in {
            "put": "Member.create",
            "update": "Member.change",
            "delete": "Member.delete",
            "check": "Member.require",
            "add": "Member.create",
            "save": "create",
            "condition_check": "change",
        }.items()
    },
    "PynamoDB's transaction": (_with_pynamodb("save"), "create"),
    "PynamoDB's deletion": (_with_pynamodb("delete"), "delete"),
    "setting and adding": (
        lambda m: m.change(visits=2, add={"visits": 1}),
        "visits or adds to it, not both",
    ),
    "save under a condition": (lambda m: m.save(NO_GUESTS), r"change\(…, condition=…\)"),  # type: ignore[arg-type]
    "save under a named condition": (lambda m: m.save(condition=NO_GUESTS), r"change\(…, cond"),
    "save of a misspelled name": (
        lambda m: (setattr(m, "crad", "A"), m.save()),
        "no attribute crad, .* Set card",
    ),
    "save of values": (lambda m: m.save(card="A"), r"change\(…"),
    "deletion under a condition": (lambda m: m.delete(NO_GUESTS), "still as it was read"),
    "deletion under a named one": (lambda m: m.delete(condition=NO_GUESTS), "still as it was read"),
    "creation of a table": (lambda _m: Member.create_table(), "createtables"),
    "expiry of a table": (lambda _m: Member.update_ttl(False), "createtables"),
    "existence of a table": (lambda _m: Member.exists(), "check"),
    "deletion of a table": (lambda _m: Member.delete_table(), "guard items"),
    "count of a table": (lambda _m: Member.count(), "scan"),
    "change of a key": (lambda m: m.change(pk="other"), "cannot be changed"),
    "change of a version": (lambda m: m.change(version=5), "cannot be changed"),
    "creation with a version": (lambda _m: ann(version=5), "never given"),
    "an expression of Django": (lambda m: m.change(visits=F("visits") + 1), r"change\(add="),
    "a condition of Django": (lambda m: m.change(card="A", condition=Q(card="B")), "attributes"),
    "a filter of Django": (lambda _m: [*Member.scan(Q(card="B"))], "made of attributes"),
    "a filter of a page": (lambda m: Member.page(m.pk, filter_condition=Q(card="B")), "attributes"),
    "a transaction of another kind": (lambda m: m.change(card="A", write=True), "write is a Tra"),  # type: ignore[arg-type]
    "get_or_create in a transaction": (
        lambda _m: Member.get_or_create(email="eve@example.org", write=Transaction()),
        "joins? no transaction",
    ),
    "get by a name": (lambda m: Member.get(pk=m.pk), r"get\(pk\). Call find"),
    "get by a Unique": (lambda _m: Member.get_or_none(email="ann@example.org"), "Call find"),
    "get by a part of a key": (lambda _m: Seat.get("red"), r"get\(hall, row\)"),
    "a key instead of keys": (lambda m: [*Member.batch_get(m.pk)], r"a list of keys \(pk\)"),
    "keys instead of pairs": (lambda _m: [*Seat.batch_get(["red"])], r"pairs \(hall, row\)"),
    "get without a key": (lambda _m: Member.get(), r"get\(pk\)"),
    "get by more than the key": (lambda m: Member.get(m.pk, "x"), r"get\(pk\)"),
    "get by a tuple": (lambda _m: Seat.get_or_none(("red", 1)), r"get\(hall, row\)"),
    "adding to the version": (lambda m: m.change(add={"version": 1}), "cannot be changed"),
    "change of an unknown name": (lambda m: m.change(cart="A"), UNKNOWN),
    "adding to an unknown name": (lambda m: m.change(add={"cart": 1}), UNKNOWN),
    "creation with an unknown name": (lambda _m: ann(cart="A"), UNKNOWN),
    "change of what is not stored": (lambda _m: Member().change(card="A"), "save"),
    "change of a part": (
        lambda m: Member.get(m.pk, attributes_to_get=["version"]).change(card="A"),
        "refresh",
    ),
}


@pytest.mark.parametrize(("call", "advice"), RAW_WRITES.values(), ids=RAW_WRITES)
def test_a_call_that_could_break_a_promise_is_refused_and_names_the_right_one(
    call: Callable[[Member], Any], advice: str
) -> None:
    member = ann()
    before = stored_items("tests-promises")

    with pytest.raises(TypeError, match=advice):
        call(member)

    assert stored_items("tests-promises") == before


Values = dict[str, Any]
#: Writes of an object whose key or version was set after it was read.
WRITES: dict[str, Callable[[Any, Values, Transaction | None], object]] = {
    "change": lambda item, values, write: item.change(**values, write=write),
    "change of nothing": lambda item, _values, write: item.change(write=write),
    "save": lambda item, values, write: item.save(update_fields=[*values], write=write),
    "require": lambda item, _values, write: item.require(write=write or Transaction()),
    "deletion": lambda item, _values, write: item.delete(write=write),
}


@pytest.mark.parametrize("is_joined", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_an_object_writes_no_other_item_than_the_one_that_was_read(
    name: str, is_joined: bool
) -> None:
    forget_all()
    seats = Seat.create(hall="red", row=1), Seat.create(hall="red", row=2)
    # The items of a series have no version until they are changed.
    tickets = ticket("keys"), ticket("keys")

    def stored() -> list[Any]:
        return [item.stored for item in (*Ticket.query("keys"), *Seat.query("red"))]

    before = stored()
    for (item, other), attribute, values, said in (
        (seats, "row", {"price": 1}, "the key of an item cannot be changed"),
        (seats, "version", {"price": 1}, "Call expect_version"),
        (tickets, "number", {"subject": "B"}, "the key of an item cannot be changed"),
    ):
        if name == "deletion" and item is tickets[0]:
            continue
        read = copy.copy(item)
        for place, value in {**values, attribute: getattr(other, attribute)}.items():
            setattr(read, place, value)
        with pytest.raises(TypeError, match=said):
            WRITES[name](read, values, Transaction() if is_joined else None)

    assert stored() == before


def test_an_object_may_have_other_values_than_its_attributes() -> None:
    member: Any = ann()
    member.backend = "as Django's login sets it"
    member._card = "A"
    member.save()
    member.crad = "A"
    member.visits = 1
    member.save()

    assert (member.crad, Member.get(member.pk).visits) == ("A", 1)


def test_a_transaction_is_committed_once_and_takes_no_writes_afterwards(
    requests_sent: Requests,
) -> None:
    member, other = ann(), bob()
    requests_sent.clear()
    with Transaction() as write:
        member.change(add={"visits": 1}, write=write)
        write.commit()
    write.commit()
    assert requests_sent.operations == ["UpdateItem"]
    assert Member.get(member.pk).visits == member.visits == 1

    # Otherwise the writes of before would stand for the later ones.
    for late in (
        lambda: other.change(card="A", write=write),
        lambda: Parcel.create(name="late", write=write),
        lambda: member.require(write=write),
    ):
        with pytest.raises(TypeError, match="sent already"):
            late()
    ended = Transaction()
    parcel = Parcel.create(name="once", write=ended)
    ended.commit()
    parcel.delete()
    with ended:
        pass
    assert [*Parcel.scan()] == []


def test_a_transaction_that_may_be_done_takes_no_writes_but_can_be_sent_again(
    proxy: FaultProxy, impatient: float
) -> None:
    member, other = ann(), bob()
    write = Transaction()
    member.change(card="A", write=write)
    Parcel.create(name="once", write=write)
    proxy.plan("TransactWriteItems", DropReply(), times=100)
    with pytest.raises(Unavailable):
        write.commit()
    proxy.forget()

    # It was done, so this would count as done as well.
    with pytest.raises(TypeError, match="sent already"):
        other.change(card="B", write=write)
    write.commit()

    assert (Member.get(member.pk).card, Member.get(other.pk).card) == ("A", None)
    assert [item.name for item in Parcel.scan()] == ["once"]


@pytest.mark.fault_of("moto", "ignores request tokens")
@pytest.mark.parametrize("more", ["nothing", "a count", "a check"])
def test_a_transaction_that_counts_and_may_be_done_counts_once_when_it_is_sent_again(
    more: str, proxy: FaultProxy, impatient: float
) -> None:
    member, other = ann(), bob()
    write = Transaction()
    if more == "a check":
        other.require(write=write)
    member.change(add={"visits": 1}, write=write)
    if more == "a count":
        other.change(add={"visits": 1}, write=write)
    proxy.plan("*", DropReply(), times=100)
    with pytest.raises(Unavailable):
        write.commit()
    proxy.forget()

    write.commit()

    assert Member.get(member.pk).visits == member.visits == 1


@pytest.mark.parametrize("more", ["nothing", "a change"])
def test_a_transaction_that_may_be_done_is_not_called_stale_if_others_have_written_its_items(
    more: str, proxy: FaultProxy, impatient: float
) -> None:
    member, other = ann(), bob()
    write = Transaction()
    member.change(card="A", write=write)
    if more == "a change":
        other.change(card="B", write=write)
    proxy.plan("*", DropReply(), times=100)
    with pytest.raises(Unavailable):
        write.commit()
    proxy.forget()
    for item in (member, other):
        Member.get(item.pk).change(card=None, visits=1)

    with pytest.raises((Unavailable, ExceptionGroup)) as caught:
        write.commit()

    errors = getattr(caught.value, "exceptions", [caught.value])
    assert all(isinstance(error, Unavailable) and error.maybe_written for error in errors)


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize("is_stored", [True, False])
def test_a_new_object_that_is_saved_again_with_other_values_is_stored_once(
    is_stored: bool, in_transaction: bool, proxy: FaultProxy, impatient: float
) -> None:
    member = Member(email="ann@example.org", club="chess", card="A")
    fault = DropReply() if is_stored else Answer(503, "ServiceUnavailable")
    proxy.plan("*", fault, times=100)
    with pytest.raises(Unavailable):
        member.save()
    proxy.forget()
    member.card = "B"

    if in_transaction:
        with Transaction() as write:
            member.save(write=write)
    else:
        member.save()

    [stored] = Member.scan()
    assert (stored.pk, stored.card, stored.version) == (member.pk, "B", member.version)
    assert Member.find(club="chess", card="B") == stored
    with pytest.raises(Member.DoesNotExist):
        Member.find(club="chess", card="A")
    member.delete()
    assert stored_items(Member.table()) == {}


def test_a_commit_that_may_be_done_stays_unknown_when_it_is_repeated(proxy: FaultProxy) -> None:
    parcel = Parcel.create(name="one")
    write = Transaction()
    parcel.change(name="two", write=write)

    def change_twice() -> None:
        for weight in (1, 2):
            Parcel.get(parcel.pk).change(weight=weight)

    proxy.plan("UpdateItem", DropReply())
    proxy.plan("UpdateItem", Meanwhile(change_twice))

    for _time in range(2):
        with pytest.raises(Unavailable) as caught:
            write.commit()
        assert caught.value.maybe_written


def test_an_object_of_a_transaction_that_was_refused_becomes_what_a_later_commit_stores() -> None:
    first = Parcel.create(name="first")
    write = Transaction()
    second = Parcel.create(pk=first.pk, name="second", write=write)
    with pytest.raises(Parcel.AlreadyExists):
        write.commit()
    first.delete()

    write.commit()

    assert second.name == Parcel.get(first.pk).name == "second"
    assert second.stored == Parcel.get(first.pk).stored


def test_a_transaction_that_was_not_committed_can_be_sent_again() -> None:
    member = ann()
    refused = Transaction()
    Member.create(email="ann@example.org", club="go", write=refused)
    with pytest.raises(Taken):
        refused.commit()
    member.delete()
    Parcel.create(name="together", write=refused)

    refused.commit()

    assert [item.club for item in Member.scan()] == ["go"]
    assert [item.name for item in Parcel.scan()] == ["together"]


# Damaged items ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "version",
    [{"N": "1.5"}, {"N": "-1"}, {"N": "1" + "0" * 30}, {"NULL": True}, {"S": "1"}, {"S": "x"}],
)
def test_a_damaged_version_is_an_error_that_names_the_item(version: Any) -> None:
    member = ann()
    overwrite(member, version=version)

    for call in (
        lambda: Member.get(member.pk),
        lambda: list(Member.scan()),
        member.refresh,
        lambda: member.change(card="A"),
    ):
        with pytest.raises(DamagedItem) as damaged:
            call()
        error = damaged.value
        assert (error.table, error.key, error.attribute) == (Member.table(), member.pk, "version")


def test_a_unique_value_that_became_too_long_can_be_changed_and_its_item_deleted() -> None:
    member = ann()
    overwrite(member, email={"S": "x" * 3000})
    read = Member.get(member.pk)

    read.change(email="bob@example.org")
    assert guards()["email#bob@example.org"] == member.pk
    read.delete()

    assert member.pk not in stored_items("tests-promises")


def test_a_damaged_value_is_an_error_that_names_the_item_with_its_whole_key() -> None:
    seat = Seat.create(hall="red", row=1)
    overwrite(seat, price={"S": "much"})

    for read in (lambda: Seat.get("red", 1), seat.refresh):
        with pytest.raises(DamagedItem, match="'red#1' of tests-seats is damaged: price"):
            read()


# Transactions of several items --------------------------------------------------------------------


def test_two_items_swap_their_values_and_a_new_one_takes_that_of_one_that_is_deleted() -> None:
    one = ann()
    two = bob()

    with Transaction() as write:
        one.change(email="bob@example.org", write=write)
        two.change(email="ann@example.org", write=write)
    assert guards() == {"email#ann@example.org": two.pk, "email#bob@example.org": one.pk}
    assert Member.find(email="bob@example.org") == one

    with Transaction() as write:
        new = ann(write=write)
        two.delete(write=write)
    assert guards() == {"email#ann@example.org": new.pk, "email#bob@example.org": one.pk}


# Request ids --------------------------------------------------------------------------------------


def test_the_same_request_returns_the_stored_item_even_if_it_changed_since() -> None:
    first = ann(request_id="form-1")
    first.change(card="A-18")

    again = ann(request_id="form-1")

    assert (again.pk, again.card, again.version) == (first.pk, "A-18", first.version)
    assert len(list(Member.scan())) == 1


@pytest.mark.fault_of("moto", "counts no units of a transaction")
def test_a_request_id_of_a_model_with_its_own_key_has_a_guard_item(requests_sent: Requests) -> None:
    first = Seat.create(hall="red", row=1, request_id="form-1")
    assert requests_sent.units == 4

    assert Seat.create(hall="red", row=1, request_id="form-1") == first
    for values in ({"row": 2}, {"row": 1, "price": Decimal(5)}):
        with pytest.raises(RequestIdReused) as reused:
            Seat.create(hall="red", request_id="form-1", **values)
        assert reused.value.request_id == "form-1"
    with pytest.raises(AlreadyExists):
        Seat.create(hall="red", row=1, request_id="form-2")
    first.delete()
    assert stored_items("tests-seats-guards") == {}
    assert Seat.create(hall="red", row=2, request_id="form-1").row == 2


# Objects ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))],  # noqa: S301
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_and_its_original_are_independent(copied: Callable[[Any], Any]) -> None:
    parcel = Parcel.create(name="one", tags={"a"}, size={"width": 1}, notes=[{"text": "x"}])

    other = copied(parcel)
    other.name = "two"
    other.tags.add("b")
    other.size.width = 2
    other.notes[0]["text"] = "y"

    assert (parcel.name, parcel.tags, parcel.size.width) == ("one", {"a"}, 1)
    assert parcel.notes == [{"text": "x"}]
    parcel.save()
    other.save()
    read = Parcel.get(parcel.pk)
    assert (read.name, read.tags, read.size.width) == ("two", {"a", "b"}, 2)
    assert (read.notes, read.version) == ([{"text": "y"}], parcel.version + 1)


def test_objects_are_equal_by_model_and_key() -> None:
    one = Seat("red", 1)
    same = Seat("red", 1, price=Decimal(2))
    other = Seat("red", 2)

    assert one == same != other
    assert {one: "found"}[same] == "found"
    assert one != Member("red")
    assert (one == "red", repr(one)) == (False, "<Seat: red, 1>")
    for unsaved, twin in [(Seat(), Seat()), (Seat(hall="red"), Seat(hall="red"))]:
        assert unsaved == unsaved != twin
        assert "None" in repr(unsaved)
        with pytest.raises(TypeError, match="unhashable"):
            hash(unsaved)


# Keys and values ----------------------------------------------------------------------------------


def test_equal_values_of_any_type_are_taken_and_others_are_not() -> None:
    Seat.create(hall="red", row=1, code=b"\x00\xff", price=Decimal("1.50"))
    zero = Seat.create(hall="red", row=4, price=Decimal(0))

    for values, unique in [
        ({"code": b"\x00\xff"}, ("code",)),
        ({"price": Decimal("1.5")}, ("hall", "price")),
        ({"price": Decimal("0.00")}, ("hall", "price")),
    ]:
        with pytest.raises(Taken) as refused:
            Seat.create(hall="red", row=2, **values)
        assert refused.value.uniques == [unique]
    assert Seat.find(hall="red", price=Decimal(0)) == zero
    assert Seat.find(code=b"\x00\xff").row == 1


@pytest.mark.parametrize("card", ["", None])
def test_an_empty_or_absent_value_claims_nothing(card: str | None) -> None:
    ann(card=card)
    bob(card=card)

    assert guards().keys() == {"email#ann@example.org", "email#bob@example.org"}


def test_several_values_become_one_key_in_json_without_escaped_letters() -> None:
    ann(club='a","b', card="c")
    bob(club="a", card='b","c')
    Member.create(email="eve@example.org", club="échecs", card="漢-1")

    assert {key for key in guards() if not key.startswith("email")} == {
        r'club,card#["a\",\"b", "c"]',
        r'club,card#["a", "b\",\"c"]',
        'club,card#["échecs", "漢-1"]',
    }


def test_reads_of_the_key_none_find_and_send_nothing(requests_sent: Requests) -> None:
    assert Member.get_or_none(None) is None
    assert Seat.get_or_none("red", None) is None
    assert list(Member.query(None)) == list(Member.batch_get([None])) == []
    assert requests_sent.operations == []


def test_an_item_that_was_read_in_part_has_its_key_and_what_was_read() -> None:
    member = ann(visits=3)

    for part in (
        Member.get(member.pk, attributes_to_get=["card"]),
        *Member.query(member.pk, attributes_to_get=["card"]),
        *Member.scan(attributes_to_get=["card", "pk"]),
    ):
        assert (part, part.card, part.visits) == (member, None, None)
        with pytest.raises(TypeError, match="refresh"):
            part.delete()
        part.refresh()
        assert part.visits == 3


@pytest.mark.parametrize("pk", ["email#ann@example.org", "requestId#form", "", "x" * 2049])
def test_an_item_cannot_have_the_key_of_a_guard_item(pk: str) -> None:
    with pytest.raises(ValueError, match="cannot have the key"):
        ann(pk=pk)


def test_guard_items_never_look_like_items() -> None:
    member = ann(card="A-17", request_id="form-1")
    guard = "email#ann@example.org"

    for read in (lambda: Member.get(guard), lambda: Member.get(""), Member(guard).refresh):
        with pytest.raises(Member.DoesNotExist):
            read()
    assert (Member.get_or_none(guard), Member.count(guard)) == (None, 0)
    assert list(Member.query(guard)) == []
    assert list(Member.batch_get([guard, member.pk, member.pk])) == [member]
    assert list(Member.query(member.pk)) == list(Member.scan()) == [member]


def test_save_refuses_a_name_that_is_not_an_attribute() -> None:
    member = ann()
    member.card = "A-17"

    with pytest.raises(ValueError, match="crad"):
        member.save(update_fields=["crad"])

    assert member.card == "A-17"


class Place(Model):
    """Its key is a random number, so its guard items are in another table."""

    class Meta:
        table_name = "tests-places"

    id: Any = NumberAttribute(hash_key=True, default_for_new=lambda: uuid.uuid4().int >> 90)
    email = TextAttribute()
    points = IntegerAttribute(default=5)
    drawn: Any = NumberAttribute(default=lambda: 5)
    size: Any = NumberAttribute(null=True)

    unique_email = Unique("email", normalize=casefolded)
    unique_size = Unique("size")


def test_an_item_whose_value_the_same_transaction_has_taken_is_not_written() -> None:
    with Transaction() as write:
        first = ann(write=write)
        with pytest.raises(Taken):
            ann(email="ANN@example.org", write=write)

    assert list(Member.scan()) == [first]


def test_a_repeated_request_is_recognized_although_its_model_has_random_keys() -> None:
    first = Place.create(email="ann@example.org", request_id="form-1")

    assert Place.create(email="ann@example.org", request_id="form-1") == first


@pytest.mark.parametrize("number", [1.0, 1e2, 1e-05, 1e22, 1e38, -0.0])
def test_the_guard_items_of_a_number_in_any_form_are_freed(number: float) -> None:
    place = Place.create(id=number, email="ann@example.org", size=number)

    assert Place.find(email="ann@example.org") == Place.find(size=number) == place
    Place.get(number).delete()
    assert stored_items("tests-places-guards") == {}


def test_add_counts_up_from_the_constant_default_of_a_number_that_is_not_stored() -> None:
    place = Place.create(email="ann@example.org")
    overwrite(place, points=None, drawn=None)
    place.refresh()
    assert (place.points, place.drawn) == (5, 5)

    place.change(add={"points": 2, "drawn": 2})

    assert Place.get(place.id) == place
    assert (place.points, place.drawn) == (7, 2)


def test_a_commit_that_counts_up_is_a_success_also_if_the_item_is_deleted_right_after_it() -> None:
    member = ann()
    other = bob()
    with Transaction() as write:
        write.on_commit(write, lambda _stored: Member.get(member.pk).delete())
        member.change(add={"visits": 1}, write=write)
        other.change(card="A-17", write=write)

    assert other.stored == stored_items("tests-promises")[other.pk]


def test_a_copy_is_written_only_if_the_form_was_shown_with_its_version() -> None:
    old = ann()
    newer = Member.get(old.pk)
    newer.change(email="new@example.org")

    with pytest.raises(Stale):
        old.expect_version(newer.version)
    newer.expect_version(newer.version)
    newer.change(card="A-17")
    newer.expect_version(old.version)
    with pytest.raises(Stale):
        newer.change(card="A-18")


def test_a_key_in_use_and_a_taken_value_are_reported_together() -> None:
    member = ann()
    other = ann(email="b@example.org", card="A-1")

    with pytest.raises(Member.AlreadyExists) as told:
        Member.create(pk=member.pk, club="chess", email="B@example.org", card="A-1")

    assert told.value.taken.uniques == [("email",), ("club", "card")]
    assert "this key already" in str(told.value)
    assert "B@example.org" in str(told.value)
    assert Member.find(email="b@example.org") == other

    # Of several items, each error names its own values.
    third = bob()
    write = Transaction()
    Member.create(pk=member.pk, club="chess", email="B@example.org", write=write)
    Member.create(pk=third.pk, club="chess", email="eve@example.org", card="A-1", write=write)
    with pytest.raises(Refused) as refused:
        write.commit()
    errors: Any = refused.value.exceptions
    assert [item.taken.uniques for item in errors] == [[("email",)], [("club", "card")]]


def test_an_object_whose_insertion_is_refused_can_be_saved() -> None:
    member = ann()

    with pytest.raises(Member.AlreadyExists):
        member.insert()
    member.club = "go"
    member.save()

    assert Member.get(member.pk).club == "go"


# Lost replies: what the register (`tests.operations`) has no case of ---------------------------


def test_an_insertion_whose_reply_was_lost_is_recognized_after_another_write(
    proxy: FaultProxy,
) -> None:
    parcel = Parcel(tags={"a", "b", "c"}, name="mine")
    proxy.plan("PutItem", DropReply())
    proxy.plan("PutItem", Meanwhile(lambda: Parcel.get(parcel.pk).change(name="theirs")))

    parcel.insert()

    assert parcel.name == "theirs"
