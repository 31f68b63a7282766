"""Pages of partitions and of global secondary indexes, their cursors, and how reads are sent."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pynamodb.expressions.condition import Condition
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex as PynamoIndex, KeysOnlyProjection

from dynamo import (
    BadCursor,
    GlobalSecondaryIndex,
    IntegerAttribute,
    Model,
    Page,
    TextAttribute,
    Unique,
    casefolded,
)
from dynamo.model.pages import MOST_REQUESTS
from tests.dynamo.desk.models import Seat
from tests.faults.kinds import Reply, nothing_processed
from tests.faults.proxy import FaultProxy
from tests.items import stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class Sailor(Model):
    class ByCity(GlobalSecondaryIndex["Sailor"]):
        city = TextAttribute(hash_key=True)
        age = IntegerAttribute(range_key=True)

    class ByBoat(PynamoIndex[Any]):
        class Meta:
            index_name = "by-boat"
            projection = AllProjection()

        boat = TextAttribute(hash_key=True)

    class NamesByCity(GlobalSecondaryIndex["Sailor"]):
        class Meta:
            projection = KeysOnlyProjection()

        city = TextAttribute(hash_key=True)

    class Meta:
        table_name = "tests-sailors"

    email = TextAttribute()
    city = TextAttribute()
    age = IntegerAttribute()
    boat = TextAttribute(null=True)
    note = TextAttribute(null=True)

    by_city = ByCity()
    by_boat: Any = ByBoat()
    names_by_city = NamesByCity()
    unique_email = Unique("email", normalize=casefolded)


def sailors(count: int, **values: Any) -> list[Sailor]:
    return [
        Sailor.create(**{"email": f"{age}@example.org", "city": "Rome", "age": age, **values})
        for age in range(count)
    ]


def seats(count: int, hall: str = "red", **values: Any) -> list[Seat]:
    return [Seat.create(hall=hall, row=row, **values) for row in range(count)]


def walked(page: Callable[[str | None], Page[Any]]) -> list[list[Any]]:
    """The items of each page, from the first to the last."""
    pages = [page(None)]
    while (cursor := pages[-1].next) is not None:
        pages.append(page(cursor))
    return [page.items for page in pages]


def rome(after: str | None, **options: Any) -> Page[Sailor]:
    return Sailor.by_city.page("Rome", after=after, **{"limit": 2, "scope": "ann", **options})


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("count", [6, 7])
def test_pages_of_a_partition_have_each_item_once_in_order(
    forward: bool, count: int, requests_sent: Requests
) -> None:
    ordered = seats(count)[:: 1 if forward else -1]
    seats(2, "blue")
    requests_sent.clear()

    found = walked(lambda after: Seat.page("red", after=after, limit=3, scan_index_forward=forward))

    assert found == [ordered[:3], ordered[3:6], *([ordered[6:]] if count > 6 else [])]
    assert requests_sent.operations == ["Query"] * len(found)
    assert Seat.page("green") == Page([], None)


def test_pages_of_an_index_have_its_items_in_order() -> None:
    items = sailors(5)
    sailors(1, city="Oslo", email="oslo@example.org")
    conditions = {"range_key_condition": Sailor.age >= 1, "filter_condition": Sailor.email.exists()}

    assert walked(rome) == [items[:2], items[2:4], items[4:]]
    assert walked(lambda after: rome(after, **conditions)) == [items[1:3], items[3:]]
    page = Sailor.by_city.page("Rome", Sailor.age > 2, scan_index_forward=False)
    assert list(page) == [items[4], items[3]]
    assert (len(page), page[0], page[:1]) == (2, items[4], [items[4]])


@pytest.mark.fault_of("moto", "counts a whole unit for a read of an index")
def test_a_page_of_an_index_costs_half_of_a_page_of_a_table(requests_sent: Requests) -> None:
    sailors(3)
    seats(3)
    requests_sent.clear()

    Sailor.by_city.page("Rome")
    assert requests_sent.units == 0.5
    Seat.page("red")
    assert requests_sent.units == 1.5


def test_an_index_of_pynamodbs_own_class_has_pages() -> None:
    items = sailors(3, boat="Ida")

    found = walked(lambda after: Sailor.by_boat.page("Ida", after=after, limit=2))

    assert {item for page in found for item in page} == {*items}
    assert list(Sailor.by_boat.query("Ida", limit=1))
    assert Sailor.by_boat.count("Ida") == len(list(Sailor.by_boat.scan())) == 3


def test_items_of_a_page_or_a_batch_can_be_changed_and_those_of_a_projection_cannot() -> None:
    sailors(1)
    [whole] = Sailor.by_city.page("Rome")
    whole.change(note="tall")
    [part] = Sailor.names_by_city.page("Rome")

    with pytest.raises(TypeError, match="refresh"):
        part.change(note="small")

    part.refresh()
    part.change(note="small")
    [read] = Sailor.batch_get([whole.pk])
    assert read.note == "small"
    read.change(age=9)


def test_guard_items_are_on_no_page(requests_sent: Requests) -> None:
    guard = "email#0@example.org"
    [sailor] = sailors(1, boat="Ida", city=guard)
    assert guard in stored_items("tests-sailors")
    requests_sent.clear()

    assert Sailor.page(guard) == Page([], None)
    assert requests_sent.operations == []
    assert Sailor.page(sailor.pk).items == [sailor]
    # The partition of an index can have the same name.
    assert Sailor.by_city.page(guard).items == list(Sailor.by_city.query(guard)) == [sailor]
    assert Sailor.by_city.count(guard) == 1
    for index in (Sailor.by_city, Sailor.by_boat, Sailor.names_by_city):
        assert [item.pk for item in index.scan()] == [sailor.pk]


@pytest.mark.parametrize("key", ["", "x" * 2049])
def test_a_value_that_no_item_can_have_has_an_empty_page(key: str, requests_sent: Requests) -> None:
    assert Sailor.by_city.page(key) == Sailor.page(key) == Page([], None)
    assert list(Sailor.by_city.query(key)) == list(Sailor.query(key)) == []
    assert Sailor.by_city.count(key) == 0
    assert requests_sent.operations == []


@pytest.mark.parametrize("city", ["", "x" * 2049])
def test_a_value_that_an_index_cannot_have_is_refused_before_a_request_is_sent(
    city: str, requests_sent: Requests
) -> None:
    [sailor] = sailors(1)
    sailor.change(boat=None)
    requests_sent.clear()

    for write in (lambda: sailor.change(city=city), lambda: sailors(1, city=city)):
        with pytest.raises(ValueError, match="city is the key of an index"):
            write()
    assert requests_sent.operations == []


# Cursors ------------------------------------------------------------------------------------------


#: Each begins at the cursor of `rome(None)`, which belongs to another query.
OTHER_QUERIES: dict[str, Callable[[str], Any]] = {
    "changed": lambda cursor: rome(cursor[:-1] + ("A" if cursor[-1] != "A" else "B")),
    "cut": lambda cursor: rome(cursor[:-1]),
    "empty": lambda _cursor: rome(""),
    "not a cursor": lambda _cursor: rome("\udc80:\x00:é"),
    "another user": lambda cursor: rome(cursor, scope="bob"),
    "another direction": lambda cursor: rome(cursor, scan_index_forward=False),
    "another condition": lambda cursor: rome(cursor, range_key_condition=Sailor.age > 1),
    "a filter": lambda cursor: rome(cursor, filter_condition=Sailor.boat.exists()),
    "another partition": lambda cursor: Sailor.by_city.page("Oslo", after=cursor, scope="ann"),
    "another index": lambda cursor: Sailor.names_by_city.page("Rome", after=cursor, scope="ann"),
    "the table": lambda cursor: Sailor.page("Rome", after=cursor, scope="ann"),
    "another table": lambda cursor: Seat.page("Rome", after=cursor, scope="ann"),
}


@pytest.mark.parametrize("other", OTHER_QUERIES.values(), ids=OTHER_QUERIES)
def test_a_cursor_that_was_changed_or_belongs_elsewhere_is_refused(
    other: Callable[[str], Any], requests_sent: Requests
) -> None:
    sailors(3)
    cursor = rome(None).next
    assert cursor is not None
    requests_sent.clear()

    with pytest.raises(BadCursor, match="does not belong"):
        other(cursor)

    assert requests_sent.operations == []
    assert len(rome(cursor, limit=9).items) == 1


def test_a_condition_on_the_key_that_concerns_another_attribute_is_refused(
    requests_sent: Requests,
) -> None:
    wrong: list[tuple[Any, Any, Condition, str]] = [
        (Sailor.by_city, "Rome", Sailor.email == "x", r"\(age\), not on email"),
        (Sailor.by_city, "Rome", (Sailor.age > 1) & (Sailor.note == "x"), r"\(age\), not on note"),
        (Sailor.by_boat, "Ark", Sailor.age > 1, r"\(there is none\), not on age"),
        (Seat, "red", Seat.guest == "x", r"\(row\), not on guest"),
    ]
    for source, key, condition, text in wrong:
        for read in (source.page, source.count, source.query):
            with pytest.raises(TypeError, match=f"{text}, which filter_condition= takes"):
                read(key, condition)
    assert requests_sent.operations == []


def test_a_cursor_that_leads_to_a_deleted_item_works() -> None:
    items = sailors(4)
    cursor = rome(None).next
    items[1].delete()
    items[2].delete()

    assert rome(cursor).items == items[3:]


# Filters and large items --------------------------------------------------------------------------


def test_a_filter_makes_short_pages_of_a_bounded_number_of_requests(
    requests_sent: Requests,
) -> None:
    items = seats(20)
    items[-1].change(guest="Ann")
    requests_sent.clear()

    def of_ann(after: str | None) -> Page[Seat]:
        return Seat.page("red", None, Seat.guest == "Ann", after=after, limit=2)

    first = of_ann(None)
    assert (first.items, len(requests_sent.operations)) == ([], MOST_REQUESTS)
    assert walked(of_ann) == [[], [items[-1]]]


def test_a_page_of_large_items_takes_several_requests(requests_sent: Requests) -> None:
    items = seats(5, guest="x" * 300_000)
    requests_sent.clear()

    assert Seat.page("red").items == items
    assert requests_sent.operations == ["Query", "Query"]


# How reads are sent -------------------------------------------------------------------------------

READS: dict[str, Callable[..., Any]] = {
    "get": lambda _seat, **options: Seat.get("red", 0, **options),
    "refresh": lambda seat, **options: seat.refresh(**options),
    "query": lambda _seat, **options: list(Seat.query("red", **options)),
    "scan": lambda _seat, **options: list(Seat.scan(**options)),
    "count": lambda _seat, **options: Seat.count("red", **options),
    "page": lambda _seat, **options: Seat.page("red", **options),
}
READS_OF_AN_INDEX: dict[str, Callable[[], Any]] = {
    "page": lambda: rome(None),
    "query": lambda: list(Sailor.by_city.query("Rome")),
    "scan": lambda: list(Sailor.by_city.scan()),
    "count": lambda: Sailor.by_city.count("Rome"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_is_consistent_unless_the_caller_asks_otherwise(
    read: Callable[..., Any], requests_sent: Requests
) -> None:
    [seat] = seats(1)
    requests_sent.clear()

    read(seat)
    read(seat, consistent_read=False)

    assert [request["ConsistentRead"] for request in requests_sent.requests] == [True, False]


@pytest.mark.parametrize("read", READS_OF_AN_INDEX.values(), ids=READS_OF_AN_INDEX)
def test_a_read_of_an_index_is_not_consistent(
    read: Callable[[], Any], requests_sent: Requests
) -> None:
    read()

    assert [request["ConsistentRead"] for request in requests_sent.requests] == [False]


# Batches ------------------------------------------------------------------------------------------


def red(numbers: Iterable[int]) -> list[Seat]:
    return list(Seat.batch_get([("red", number) for number in numbers]))


def some_processed(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a batch of which only the first key was processed, which has no item."""
    [(table, wanted)] = request["RequestItems"].items()
    left = wanted | {"Keys": wanted["Keys"][1:]}
    return {"Responses": {table: []}, "UnprocessedKeys": {table: left}}


def test_repeated_and_absent_keys_cost_one_request(requests_sent: Requests) -> None:
    items = seats(3)
    requests_sent.clear()

    assert {*red([0, 2, 0, 9])} == {items[0], items[2]}
    assert len(requests_sent.operations) == 1
    assert red([]) == []
    assert {*red(range(150))} == {*items}
    assert requests_sent.operations == ["BatchGetItem"] * 3


def test_unprocessed_keys_are_asked_for_again(proxy: FaultProxy) -> None:
    items = seats(5)
    proxy.plan("BatchGetItem", Reply(nothing_processed), 2)
    proxy.plan("BatchGetItem", Reply(some_processed))

    assert {*red(range(5))} == {*items[1:]}

    asked = [item.body["RequestItems"] for item in proxy.seen if item.operation == "BatchGetItem"]
    consistent = [wanted["ConsistentRead"] for item in asked for wanted in item.values()]
    assert consistent == [True] * 4
