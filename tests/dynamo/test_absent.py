"""Stored items that lack an attribute with a constant default: conditions, and how to fill it."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations, product
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pytest
from pynamodb.expressions.condition import Condition, size
from pynamodb.indexes import KeysOnlyProjection

from dynamo import (
    BooleanAttribute,
    ConditionFailed,
    GlobalSecondaryIndex,
    IntegerAttribute,
    Model,
    TextAttribute,
    Transaction,
    Unique,
)
from tests.items import overwrite
from tests.requests import Requests


class Refusal(Exception):
    """The condition of a check does not hold."""


pytestmark = pytest.mark.usefixtures("engine")


class Room(Model):
    class Meta:
        table_name = "tests-rooms"
        guard_table = "tests-rooms-guards"

    class ByState(GlobalSecondaryIndex["Room"]):
        class Meta:
            projection = KeysOnlyProjection()

        state = TextAttribute(hash_key=True)

    house = TextAttribute(hash_key=True)
    name = TextAttribute(range_key=True)
    is_open = BooleanAttribute(default=False)
    beds = IntegerAttribute(default=5)
    state = TextAttribute(default="new")
    code = TextAttribute(default="c")

    by_state = ByState()
    unique_code = Unique("code")


def room(name: str, *lacks: str) -> Room:
    """A stored room that lacks these attributes."""
    made = Room.create(house="h", name=name, code=name)
    # As an item of another program, or one that was stored before the attributes were declared.
    if lacks:
        overwrite(made, **dict.fromkeys(lacks))
        made.refresh()
    return made


def conditions() -> Iterator[Condition]:
    """All kinds of comparisons, with values around the defaults."""
    state: Any = Room.state
    comparable: list[tuple[Any, list[Any]]] = [(Room.beds, [4, 5, 6]), (state, ["m", "new", "o"])]
    for attribute, values in comparable:
        for value in values:
            yield from (attribute < value, attribute <= value, attribute > value)
            yield from (attribute >= value, attribute.between(value, values[-1]))
    for attribute, values in [*comparable, (Room.is_open, [True, False])]:
        yield attribute.is_in(*values[1:])
        for value in values:
            yield from (attribute == value, attribute != value)
    for text in ("ne", "x"):
        yield from (state.startswith(text), state.contains(text))


def is_allowed(call: Callable[..., object], item: Room, condition: Condition) -> bool:
    try:
        call(item, condition=condition)
    except (ConditionFailed, Refusal):
        return False
    return True


def check(item: Room, condition: Condition) -> None:
    with Transaction() as write:
        write.check(item, condition, otherwise=Refusal())
        write.check(Room(house="h", name="z"), Room.house.exists(), otherwise=Refusal())


@pytest.mark.parametrize("inverted", [False, True])
def test_a_condition_holds_for_an_absent_value_if_it_holds_for_its_default(inverted: bool) -> None:
    rooms = {"absent": room("absent", "is_open", "beds", "state"), "stored": room("stored")}
    room("z").change(is_open=True, beds=99, state="x")
    for condition in conditions():
        condition = ~condition if inverted else condition
        found = {item.name for item in Room.scan(condition)} & rooms.keys()
        assert found in (rooms.keys(), set()), condition
        for asked in (condition & Room.code.exists(), condition | (Room.beds == 98)):
            assert {item.name for item in Room.page("h", None, asked)} & rooms.keys() == found
        assert Room.count("h", Room.name < "z", condition) == len(found)
        for item in rooms.values():
            for call in (Room.change, check):
                assert is_allowed(call, item, condition) == bool(found), (call, condition)
    assert rooms["absent"].stored.keys().isdisjoint({"isOpen", "beds", "state"})


class Tour(Model):
    class Meta:
        table_name = "tests-tours"

    booked = IntegerAttribute(default=0)
    seats = IntegerAttribute(default=2)
    least = IntegerAttribute()


@pytest.mark.parametrize("compare", [lt, le, gt, ge, eq, ne])
@pytest.mark.parametrize("inverted", [False, True])
def test_attributes_are_compared_as_they_are_read(compare: Any, inverted: bool) -> None:
    tours = []
    for booked, seats, least in product([None, 0, 2, 3], [None, 0, 2], [0, 1, 2]):
        given = {"booked": booked, "seats": seats}
        tour = Tour.create(**{name: value or 0 for name, value in given.items()}, least=least)
        if absent := [name for name, value in given.items() if value is None]:
            overwrite(tour, **dict.fromkeys(absent))
        tours.append(Tour.get(tour.pk))

    for one, other in permutations(["booked", "seats", "least"], 2):
        condition = compare(getattr(Tour, one), getattr(Tour, other))
        condition = ~condition if inverted else condition
        expected = {
            tour.pk
            for tour in tours
            if compare(getattr(tour, one), getattr(tour, other)) != inverted
        }
        assert {tour.pk for tour in Tour.scan(condition)} == expected
    seated: Any = Tour.booked.between(Tour.least, Tour.seats)
    expected = {tour.pk for tour in tours if tour.least <= tour.booked <= tour.seats}
    assert {tour.pk for tour in Tour.scan(seated)} == expected


def test_simultaneous_bookings_never_exceed_the_seats(at_once: Callable[..., list[Any]]) -> None:
    tour = Tour.create(least=1)
    overwrite(tour, booked=None, seats=None)

    def book(_number: int) -> bool:
        return is_allowed(partial(Tour.change, add={"booked": 1}), tour, Tour.booked < Tour.seats)

    assert sum(at_once(book)) == 2
    assert Tour.get(tour.pk).booked == 2


def test_a_condition_that_cannot_count_a_default_is_refused_and_others_ask_what_is_stored() -> None:
    item = room("absent", "beds", "state")
    state: Any = Room.state
    beds: Any = Room.beds
    for condition in (
        size(Room.state) > 3,
        Room.version >= beds + 1,
        state.contains(Room.code),
        Room.code.startswith(state),
    ):
        with pytest.raises(TypeError, match="not its size, a part of it or a sum"):
            [*Room.scan(condition)]

    assert [*Room.scan(Room.beds.exists())] == [*Room.scan(Room.beds.is_type())] == []
    assert [*Room.scan(Room.beds.does_not_exist())] == [item]
    # An index that lacks the attribute does not tell its value.
    item.change(state="old")
    assert [*Room.by_state.query("old", None, Room.beds == 5)] == []


def test_a_change_stores_a_default_that_is_absent_and_so_fills_index_and_guard_items(
    requests_sent: Requests,
) -> None:
    item = room("one", "state", "code")
    other = room("two", "code")
    assert (item.state, item.code, other.code) == ("new", "c", "c")
    assert Room.by_state.page("new").items == [other]
    item.state = "new"
    item.save()
    requests_sent.clear()

    item.change(state=item.state)

    assert requests_sent.operations == ["UpdateItem"]
    assert {item.name for item in Room.by_state.page("new")} == {"one", "two"}
    item.change(code=item.code)
    assert Room.find(code="c") == item
    with pytest.raises(Room.Taken):
        other.change(code=other.code)
    assert Room.get("h", "one").stored == item.stored
