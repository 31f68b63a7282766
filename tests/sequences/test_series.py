"""Series of any model: number, item and guard item in one transaction; 1, 2, 3 … without a gap."""

import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from dynamo import DamagedItem, Rejected, Transaction
from dynamo.client.plain import PlainModel
from dynamo.client.writes import Write
from dynamo.runtime import deadline
from dynamo.wire.values import ITEM_MAX_BYTES
from sequences import check_series, series as issuing, start_series
from sequences.exceptions import DamagedSeries, ItemTooLarge, OutOfOrder, RequestIdReused
from sequences.series import issue
from tests.dynamo.desk.models import Customer
from tests.numbered import (
    Entry,
    Reading,
    Ticket,
    assert_whole,
    behind,
    entry,
    forget_all,
    new_series,
    put_counter,
    put_item,
    remember,
    remove_counter,
    remove_item,
    stored_counter,
    stored_guard,
    stored_items,
    stored_numbers,
    ticket,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def series() -> str:
    return new_series()


# Numbers ------------------------------------------------------------------------------------------


def test_an_issued_item_is_returned_as_it_is_stored(series: str) -> None:
    item = Ticket("another", 77, subject="Broken door", tags={"door"}, photo=b"\xff\x00")
    request_id = uuid.uuid4()

    assert issue(item, series=series, request_id=request_id) is item
    for element in (item, Ticket.get(series, 1)):
        assert (element.series, element.number, element.request_id) == (series, 1, str(request_id))
    assert [item.stored] == stored_items(Ticket, series)
    assert item.stored == {
        "series": {"S": series},
        "number": {"N": "1"},
        "requestId": {"S": str(request_id)},
        "subject": {"S": "Broken door"},
        "tags": {"SS": ["door"]},
        "photo": {"B": b"\xff\x00"},
    }
    guard = stored_guard(Ticket, series, str(request_id))
    assert guard is not None
    assert guard["owner"] == {"S": f"{series}#1"}
    assert stored_counter(Ticket, series) == {
        "counterName": {"S": f"testTickets#{series}"},
        "currentValue": {"N": "1"},
    }
    assert entry(series, "2026-03-14").number == 1  # models do not share a series


REFUSED: list[tuple[Callable[[str], Any], str]] = [
    *(
        (lambda _series, name=name: ticket(name), "series|key|encode")
        for name in ("", " ", "requestId#a", "x" * 2048, "\ud800")
    ),
    *(
        (lambda series, name=name: ticket(series, request_id=name), "request id|key|encode")
        for name in ("", " ", "x" * 2048, "a#b", "\ud800")
    ),
    (lambda _series: ticket(2026), "'2026'"),  # type: ignore[arg-type]
    (lambda series: issue(Ticket(), series=series), "subject"),
    (lambda series: issue(Entry(), series=series), "order"),
    (lambda series: issue(Reading(value=float("nan")), series=series), "cannot store NaN"),
    (lambda series: issue(Reading(value=float("inf")), series=series), "cannot store Infinity"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED)
def test_an_unusable_name_or_attribute_is_refused_before_anything_is_sent(
    series: str, requests_sent: Requests, call: Callable[[str], Any], reason: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=reason):
        call(series)

    assert requests_sent.operations == []


# One request, one item ----------------------------------------------------------------------------


def test_a_repeated_request_gets_the_item_as_it_is_stored_now(series: str) -> None:
    first = entry(series, "2026-03-14", request_id="a")
    put_item(Entry, first.stored, note={"S": "Repaired"})
    entry(series, "2026-05-01")

    again = entry(series, "2026-03-14", request_id="a")

    assert again.stored == first.stored | {"note": {"S": "Repaired"}}
    assert_whole(Entry, series, 2)


def test_the_contents_of_a_request_have_every_value_but_no_order(series: str) -> None:
    one, other = (
        Ticket(key, number, request_id=key, subject="a", tags={"a", "b", "c"})
        for number, key in enumerate("ab")
    )
    wire = other.to_wire()
    # In another process, a set may have another order.
    wire["tags"]["SS"].reverse()
    other.to_wire = lambda: wire  # type: ignore[method-assign]
    assert one.digest() == other.digest()
    values: list[dict[str, Any]] = [{}, {"tags": {"a"}}, {"photo": b"1"}, {"photo": b"2"}]
    assert len({Ticket("a", 0, subject="a", **value).digest() for value in values}) == 4

    ticket(series, request_id="a", details={"door": "front", "floor": 2})
    assert ticket(series, request_id="a", details={"floor": 2, "door": "front"}).number == 1
    with pytest.raises(RequestIdReused) as refused:
        ticket(series, request_id="a", photo=b"1")
    error = refused.value
    assert (error.request_id, error.series, error.number) == ("a", series, 1)


def test_a_request_id_whose_item_is_damaged_is_an_error(series: str) -> None:
    put_item(Ticket, ticket(series, request_id="a").stored, subject={"N": "1"})

    with pytest.raises(DamagedItem, match="subject"):
        ticket(series, request_id="a")


# Further writes -----------------------------------------------------------------------------------


class Full(Exception):
    pass


def note(name: str, error: Exception | None = None) -> Write:
    """A further write: an item with this name, if there is none."""
    item = Entry(f"notes#{name}", 1)
    return Write.put(item, Entry.series.does_not_exist(), otherwise=error or Full(name))


def test_writes_that_a_transaction_collected_are_committed_with_the_item(series: str) -> None:
    customer = Customer.create(email="ann@example.org", club="chess")
    write = Transaction()
    customer.change(add={"visits": 1}, write=write)
    friend = Customer(email="bob@example.org", club="chess").insert(write=write)

    assert issue(Ticket(subject="a"), series=series, request_id="form", also=write).number == 1

    assert Customer.find(email="bob@example.org") == friend
    assert customer.visits == 1
    customer.change(card="A-17")  # the object is what is stored
    write = Transaction()
    Customer.create(email="BOB@example.org", club="go", write=write)
    with pytest.raises(Customer.Taken):
        issue(Ticket(subject="b"), series=series, also=write)
    # Of a repeated call nothing is written.
    write = Transaction()
    customer.change(add={"visits": 1}, write=write)
    assert issue(Ticket(subject="a"), series=series, request_id="form", also=write).number == 1
    assert (customer.visits, Customer.get(customer.pk).visits) == (1, 1)
    assert_whole(Ticket, series, 1)


def test_two_writes_of_one_item_use_two_transactions(series: str, requests_sent: Requests) -> None:
    name = new_series()

    with behind(Ticket, series, lambda: ticket(series)) as then:
        one, other = (then(lambda: ticket(series, also=[note(name)])) for _ in range(2))
        plain = then(lambda: ticket(series))
        requests_sent.clear()

    assert {one.result().number, plain.result().number} == {2, 3}
    with pytest.raises(Full):
        other.result()
    assert_whole(Ticket, series, 3)
    # One transaction with both would be rejected, because it writes an item twice.
    sent = requests_sent.of("TransactWriteItems")
    assert [len(item["TransactItems"]) for item in sent] == [1 + 3 + 2, 1 + 3]


def test_no_later_item_goes_before_one_that_waits_for_a_further_write(series: str) -> None:
    name = new_series()

    def counting(day: str) -> Entry:
        add = Write.update(
            Ticket(name, 1), [Ticket.subject.set(day)], Ticket.subject != day, otherwise=Full()
        )
        return issue(Entry(day=day), series=series, also=[add])

    with behind(Entry, series, lambda: entry(series, "2026-03-10")) as then:
        one = then(lambda: counting("2026-03-11"))
        other = then(lambda: counting("2026-03-12"))
        later = then(lambda: entry(series, "2026-03-13"))

    assert [item.result().number for item in (one, other, later)] == [2, 3, 4]


def exists(series: str, number: int) -> Write:
    key = Ticket(series, number)
    request = PlainModel.get_delete_kwargs_from_instance(key, Ticket.subject.exists(), "ALL_OLD")
    return Write(key, "ConditionCheck", request, Full(str(number)))


def issued_elsewhere(series: str, count: int) -> None:
    """Issue items in a process of which this one has seen only the first item."""
    for _ in range(count):
        ticket(series)
    remember(Ticket, series, 1)


def with_note(name: str, error: Exception | None = None) -> Callable[[str], Ticket]:
    return lambda series: ticket(series, also=[note(f"{series} {name}", error)])


FULL = Full()

#: What callers issue that wait together for a series whose next number is 3, and what they get.
GROUPS: dict[str, tuple[list[Callable[[str], Ticket]], list[Any]]] = {
    "a reused request id": (
        [
            *(ticket, ticket, lambda series: ticket(series, request_id="a", subject="Other")),
            *(lambda series: ticket(series, request_id="a"), ticket),
        ],
        [3, 4, Ticket.RequestIdReused, 1, 5],
    ),
    "a refused further write": (
        [with_note("1"), with_note("taken"), with_note("2"), with_note("3")],
        [3, Full, 4, 5],
    ),
    "a refused further write whose error is that of all": (
        [with_note("1", FULL), with_note("taken", FULL), with_note("2", FULL)],
        [3, Full, 4],
    ),
    "a further write for the item itself, which DynamoDB rejects": (
        [lambda series: ticket(series, also=[exists(series, 3)]), ticket, ticket],
        [Rejected, 3, 4],
    ),
    "too many further writes": (
        [lambda series: ticket(series, also=[note(f"{series} {n}") for n in range(100)]), ticket],
        [ValueError, 3],
    ),
}


@pytest.mark.parametrize(("calls", "outcomes"), GROUPS.values(), ids=GROUPS)
def test_of_a_group_only_the_item_at_fault_fails(
    series: str, calls: list[Callable[[str], Ticket]], outcomes: list[Any]
) -> None:
    ticket(series, request_id="a", also=[note(f"{series} taken")])

    with behind(Ticket, series, lambda: ticket(series)) as then:
        callers = [then(partial(call, series)) for call in calls]

    assert [
        type(error) if (error := caller.exception()) else caller.result().number
        for caller in callers
    ] == outcomes
    assert_whole(Ticket, series, max(outcome for outcome in outcomes if isinstance(outcome, int)))


@pytest.mark.parametrize(("number", "first"), [(1, "TransactWriteItems"), (2, "GetItem")])
def test_a_further_write_may_be_for_any_item_that_another_process_issued(
    series: str, number: int, first: str, requests_sent: Requests
) -> None:
    issued_elsewhere(series, 2)
    requests_sent.clear()

    assert ticket(series, also=[exists(series, number)]).number == 3

    assert_whole(Ticket, series, 3)
    assert requests_sent.operations[:2] == [first, "TransactWriteItems"]


# Order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "last", "early", "stored"),
    [
        (lambda day: Entry(day=day), "2026-03-14", "2026-03-13", {"S": "2026-03-14"}),
        (lambda value: Reading(value=value), 10, 9, {"N": "10"}),
        (lambda value: Reading(value=value), 0, -1.5, {"N": "0"}),
    ],
    ids=["text", "number", "negative number"],
)
def test_an_item_out_of_order_is_refused_and_skips_no_number(
    series: str,
    requests_sent: Requests,
    make: Callable[[Any], Any],
    last: Any,
    early: Any,
    stored: Any,
) -> None:
    first = issue(make(last), series=series)
    counter = stored_counter(type(first), series)
    assert counter is not None
    assert counter["lastDate"] == stored
    requests_sent.clear()

    with pytest.raises(OutOfOrder) as refused:
        issue(make(early), series=series)

    # The counter, then the guard item: the request may have issued an item before.
    assert requests_sent.operations == ["GetItem", "TransactGetItems"]
    assert (refused.value.value, refused.value.last) == (str(early), str(last))
    assert issue(make(last), series=series).number == 2
    assert_whole(type(first), series, 2)


def test_no_item_is_refused_for_a_remembered_value(series: str, requests_sent: Requests) -> None:
    entry(series, "2026-12-24")
    remove_item(Entry, series, 1)
    remove_counter(Entry, series)
    requests_sent.clear()

    assert entry(series, "2026-03-14").number == 1
    assert requests_sent.operations[0] == "GetItem"
    assert_whole(Entry, series, 1)


@pytest.mark.parametrize("number", [2, 1], ids=["moved by another process", "restored"])
def test_an_item_is_compared_with_the_last_one_that_is_stored(series: str, number: int) -> None:
    first = entry(series, "2026-03-10")
    put_item(Entry, first.stored, number={"N": f"{number}"}, day={"S": "2026-03-15"})
    put_counter(Entry, series, number, "2026-03-15")

    with pytest.raises(OutOfOrder):
        entry(series, "2026-03-12")

    assert_whole(Entry, series, number)


def test_a_group_is_numbered_in_order(series: str) -> None:
    with behind(Entry, series, lambda: entry(series, "2026-03-10")) as then:
        later = then(lambda: entry(series, "2026-03-12"))
        earlier = then(lambda: entry(series, "2026-03-11"))
        too_early = then(lambda: entry(series, "2026-03-09"))

    assert (earlier.result().number, later.result().number) == (2, 3)
    with pytest.raises(OutOfOrder):
        too_early.result()
    with pytest.raises(OutOfOrder):
        entry(series, "2026-03-11")
    assert_whole(Entry, series, 3)


# What it costs ------------------------------------------------------------------------------------


READ, WRITE, READ_BOTH = "GetItem", "TransactWriteItems", "TransactGetItems"


def moved(series: str) -> None:
    """Let another process move the counter."""
    issued_elsewhere(series, 1)


def overtaken(series: str) -> None:
    """Let this process be overtaken, and know it."""
    issued_elsewhere(series, 1)
    ticket(series)


def moved_again(series: str) -> None:
    """Let another process move the counter after this one was overtaken."""
    overtaken(series)
    put_item(Ticket, stored_items(Ticket, series)[0], number={"N": "4"})
    put_counter(Ticket, series, 4)


#: What happened after the first item was issued for the request a, the next call, and its requests.
COSTS: dict[str, tuple[Callable[[str], object], dict[str, Any], list[str]]] = {
    "a known series": (ticket, {}, [WRITE]),
    "further writes": (ticket, {"also": ["one", "two"]}, [WRITE]),
    "an unknown series": (lambda _series: forget_all(), {}, [READ, WRITE]),
    "another process moved the counter": (moved, {}, [WRITE, WRITE]),
    "another process moved it again": (moved_again, {}, [READ, WRITE]),
    "a repeated request": (ticket, {"request_id": "a"}, [WRITE, READ_BOTH]),
    "a repeated request in a new process": (
        lambda _series: forget_all(),
        {"request_id": "a"},
        [READ, WRITE, READ_BOTH],
    ),
}


@pytest.mark.parametrize(("happens", "call", "requests"), COSTS.values(), ids=COSTS)
def test_what_issuing_costs(
    series: str,
    requests_sent: Requests,
    happens: Callable[[str], object],
    call: dict[str, Any],
    requests: list[str],
) -> None:
    ticket(series, request_id="a")
    happens(series)
    also = [note(f"{series} {name}") for name in call.get("also", ())]
    requests_sent.clear()

    ticket(series, **call | {"also": also})

    assert requests_sent.operations == requests
    assert all(read["ConsistentRead"] for read in requests_sent.of(READ))
    if happens is not moved and happens is not moved_again:
        requests_sent.clear()
        ticket(series)
        assert requests_sent.operations == [WRITE]


# Sizes --------------------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
@pytest.mark.parametrize(
    ("count", "own", "others", "sizes"),
    [
        # A transaction has at most 100 actions: the counter, and two for each item.
        (55, 10, 0, [99, 13]),
        # At most 500 units: 2 for each KB.
        (49, 99_000, 0, [5] * 24 + [3]),
        (49, 10, 99_000, [7] * 24 + [4]),
    ],
    ids=["small items", "large items", "large further writes"],
)
def test_waiting_items_share_transactions_of_as_many_as_fit(
    series: str,
    requests_sent: Requests,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    own: int,
    others: int,
    sizes: list[int],
) -> None:
    # A slow engine may take so long for 25 transactions.
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 60.0)

    def issue_one() -> Ticket:
        attached = Ticket(f"notes#{new_series()}", 1, subject="x" * others)
        put = Write.put(attached, Ticket.series.does_not_exist(), otherwise=Full())
        return ticket(series, subject="x" * own, also=[put] if others else [])

    with behind(Ticket, series, lambda: ticket(series)) as then:
        waiting = [then(issue_one) for _ in range(count)]
        requests_sent.clear()

    assert sorted(future.result().number for future in waiting) == list(range(2, count + 2))
    writes = [len(request["TransactItems"]) for request in requests_sent.requests]
    assert sorted(writes, reverse=True) == sizes
    if own + others < 1_000:
        assert requests_sent.units == 2 * len(sizes) + 4 * count
    assert_whole(Ticket, series, count + 1)


@pytest.mark.fault_of("moto", "takes at most 405,000 bytes an item")
def test_the_largest_item_is_issued_and_no_larger_one(series: str, requests_sent: Requests) -> None:
    names = len("seriesnumberrequestIdsubject")
    room = ITEM_MAX_BYTES - names - len(series) - len("a") - issuing.NUMBER_BYTES - 3

    assert ticket(series, subject="x" * room, request_id="a").number == 1
    requests_sent.clear()
    with pytest.raises(
        ItemTooLarge, match=r"^The item is too large: it has 500,\d{3} bytes; at most"
    ):
        ticket(series, tags={f"{number} {'x' * 100_000}" for number in range(5)})
    with pytest.raises(ItemTooLarge) as refused:
        ticket(series, subject="x" * (room + 1), request_id="b")

    assert refused.value.size_bytes == refused.value.limit_bytes + 1
    assert requests_sent.operations == []


# Damaged series ----------------------------------------------------------------------------------


def test_an_item_beyond_the_counter_is_damage(series: str, requests_sent: Requests) -> None:
    first = ticket(series, request_id="a")
    with behind(Ticket, series, lambda: ticket(series)) as then:
        put_item(Ticket, first.stored, number={"N": "3"}, requestId={"S": "by hand"})
        waiting = [then(lambda: ticket(series)) for _ in range(3)]
        requests_sent.clear()

    for item in waiting:
        with pytest.raises(DamagedSeries) as refused:
            item.result()
        assert refused.value.series == series
    assert requests_sent.operations == ["TransactWriteItems", "TransactGetItems"]
    assert (stored_counter(Ticket, series) or {})["currentValue"] == {"N": "2"}
    # Repeated requests still get their items.
    assert ticket(series, request_id="a").stored == first.stored


def test_an_item_beyond_the_counter_of_an_ordered_series_is_damage(series: str) -> None:
    put_item(Entry, entry(series, "2026-03-14").stored, number={"N": "2"})

    with pytest.raises(DamagedSeries, match=series):
        entry(series, "2026-03-15")


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize(
    ("value", "last"),
    [
        ({"S": "seven"}, "a"),
        ({"N": "1.5"}, "a"),
        ({"N": "-3"}, "a"),
        (1, {"N": "20260101"}),
        (1, {"BOOL": True}),
    ],
)
def test_a_counter_without_a_number_or_with_another_order_is_damage(
    series: str, value: Any, last: Any, knows: bool
) -> None:
    entry(series, "2026-03-14")
    put_counter(Entry, series, value, last)
    before = stored_counter(Entry, series)
    if not knows:
        forget_all()

    with pytest.raises(DamagedSeries, match=series):
        entry(series, "2026-03-14")

    assert stored_counter(Entry, series) == before
    assert stored_numbers(Entry, series) == [1]


@pytest.mark.parametrize(
    "owner",
    # None, and then another request's item and itself.
    ["", "nothing", "#1", "{series}#9", "{series}#1", "{guard}#0"],
)
def test_a_guard_that_does_not_name_its_requests_item_is_damage(series: str, owner: str) -> None:
    ticket(series)
    key = Ticket.guard_key(series, "a")
    named = {"owner": {"S": owner.format(series=series, guard=key)}} if owner else {}
    put_item(Ticket, {"series": {"S": key}, "number": {"N": "0"}} | named)

    with behind(Ticket, series, lambda: ticket(series)) as then:
        damaged = then(lambda: ticket(series, request_id="a"))
        other = then(lambda: ticket(series))

    assert other.result().number == 3
    with pytest.raises(DamagedSeries, match=series):
        damaged.result()
    assert_whole(Ticket, series, 3)


# Series that continue another system --------------------------------------------------------------


def test_a_series_begins_where_it_was_told_and_its_check_expects_that() -> None:
    started, plain = new_series(), new_series()
    start_series(Ticket, started, at=1001)
    assert [report.is_sound for report in check_series(Ticket, series=[started])] == [True]

    assert [ticket(started).number for _count in range(3)] == [1001, 1002, 1003]
    assert ticket(plain).number == 1
    put_item(Ticket, stored_items(Ticket, started)[0], number={"N": "7"}, requestId={"S": "x"})
    remove_item(Ticket, started, 1002)

    reports = {report.series: report for report in check_series(Ticket)}
    assert [reports[plain].first, reports[plain].is_sound] == [1, True]
    report = reports[started]
    assert (report.first, report.last, report.items) == (1001, 1003, 3)
    assert (report.gaps.listed, report.beyond.listed) == ([1002], [7])


@pytest.mark.parametrize("at", [0, -1, 10**15, 1.5, Decimal("1.5"), True, "7", None])
def test_a_series_cannot_begin_at_such_a_number(at: Any) -> None:
    series = new_series()
    with pytest.raises((TypeError, ValueError), match="begins at a"):
        start_series(Ticket, series, at=at)
    assert stored_counter(Ticket, series) is None
