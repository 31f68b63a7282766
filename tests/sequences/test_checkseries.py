"""The check of series finds each kind of damage, and reports nothing else."""

import json
import tracemalloc
from collections import Counter as Counts
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dynamo.client import bulk
from dynamo.client.sending import send
from dynamo.tables import findings
from dynamo.transactions import READ_TOGETHER
from sequences import check_series
from sequences.check import SeriesCheck, SeriesReport, position as place
from sequences.models import Counter
from tests import commands
from tests.numbered import (
    Ticket,
    entry,
    new_series,
    put_counter,
    put_item,
    remove_counter,
    remove_item,
    stored_items,
    ticket,
)
from tests.requests import Requests, limit_pages

pytestmark = pytest.mark.usefixtures("engine")

LABEL = "tests.numbered.Ticket"


@pytest.fixture(autouse=True)
def _little_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "SEGMENTS", 3)
    limit_pages(monkeypatch, 3)
    monkeypatch.setattr(findings, "TOGETHER", 2)


@pytest.fixture
def series() -> str:
    """A series of three tickets with the request ids a, b and c."""
    made = new_series()
    for request_id in "abc":
        ticket(made, request_id=request_id)
    return made


def check(*series: str) -> list[SeriesReport]:
    return list(check_series(Ticket, series=series or None))


def report_on(series: str, *entries: list[str]) -> SeriesReport | None:
    """The report of a series for which a scan returned these entries."""
    return SeriesCheck(Ticket, series, "").run([[series, *item] for item in entries])


def found(report: SeriesReport) -> dict[str, list[Any]]:
    """The damage of a series, by kind."""
    return {kind: findings.listed for kind, findings in report.findings.items() if findings}


def only(series: str) -> SeriesReport:
    """The report of the series, which must be the same from a scan and from queries."""
    [report] = [item for item in check() if item.series == series]
    assert check(series) == [report]
    return report


def run(*arguments: str) -> tuple[str, str]:
    """Run the command; return its output and its error, which is empty if it succeeds."""
    out, err, code = commands.run("checkseries", *arguments)
    assert code == int(bool(err))
    return out, err


# Series without damage ----------------------------------------------------------------------------


def test_each_undamaged_series_is_one_json_line_with_the_documented_keys() -> None:
    assert run(LABEL.lower(), "--json") == ("", "")
    series = new_series()
    ticket(series, request_id="a")

    out, error = run(LABEL, "--json")

    assert error == ""
    document = {"series": series, "last": 1, "items": 1, "gaps": [], "duplicates": []}
    assert out == f"{json.dumps(document)}\n"


def test_a_check_without_damage_costs_two_scans(
    series: str, requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests_sent.clear()

    limit_pages(monkeypatch, 1_000)

    check()

    assert requests_sent.operations == ["Scan"] * 6
    assert all(request["ConsistentRead"] for request in requests_sent.requests)


def test_some_series_are_checked_without_a_scan(series: str, requests_sent: Requests) -> None:
    other = new_series()
    ticket(other)
    remove_item(Ticket, series, 2)
    requests_sent.clear()
    told = Counts[str]()

    reports = list(
        check_series(
            Ticket,
            series=[other, series, "nothing", series],
            progress=lambda what, count: told.update({what: count}),
        )
    )

    assert "Scan" not in requests_sent.operations
    assert told == {"Items read": 6}  # and guard items
    assert sorted((report.series, report.gaps.listed) for report in reports) == sorted(
        [(other, []), (series, [2])]
    )


def test_plain_counters_and_those_of_other_models_are_not_series_of_a_model() -> None:
    item = {"counterName": {"S": "testTickets"}, "currentValue": {"N": "7"}}
    send("PutItem", {"TableName": Counter.table(), "Item": item})
    entry(new_series(), "2026-03-14")

    assert check() == []


def test_many_series_with_the_same_request_ids_are_reported_in_the_order_of_their_names() -> None:
    names = sorted(new_series() for _ in range(12))
    for count, name in enumerate(names):
        for number in range(count % 4 + 1):
            ticket(name, request_id=f"{number}")

    reports = check()  # many pages

    assert [report.series for report in reports] == names
    assert [report.items for report in reports] == [1, 2, 3, 4] * 3
    assert all(report.is_sound for report in reports)


# Damage -------------------------------------------------------------------------------------------


def test_an_item_whose_guard_item_was_deleted_is_found(series: str) -> None:
    key = Ticket.guard_key(series, "b")
    remove_item(Ticket, key, 0)

    report = only(series)

    assert found(report) == {"guards": [key]}
    assert (report.last, report.items) == (3, 3)


def test_an_item_deleted_by_hand_is_a_gap_and_its_guard_names_nothing(series: str) -> None:
    remove_item(Ticket, series, 2)

    [report] = check()

    assert found(report) == {"gaps": [2], "guards": [Ticket.guard_key(series, "b")]}
    assert (report.last, report.items) == (3, 2)
    # Queries do not find the guard item of a missing item.
    assert [found(item) for item in check(series)] == [{"gaps": [2]}]


def lose(*numbers: int) -> Callable[[str], None]:
    """Delete items together with their guard items."""

    def delete(series: str) -> None:
        for number in numbers:
            remove_item(Ticket, series, number)
            remove_item(Ticket, Ticket.guard_key(series, "abc"[number - 1]), 0)

    return delete


def copy(original: int, number: str, **changes: Any) -> Callable[[str], None]:
    """Store an item again under another number."""

    def put(series: str) -> None:
        item = stored_items(Ticket, series)[original - 1]
        put_item(Ticket, item, number={"N": number}, **changes)

    return put


def count_to(value: Any) -> Callable[[str], None]:
    return lambda series: put_counter(Ticket, series, value)


def copy_twice(series: str) -> None:
    copy(2, "4")(series)
    copy(2, "5")(series)
    count_to(5)(series)


BY_HAND = {"requestId": {"S": "by hand"}}

#: What is done to a series of three items; then the last number, how many items, and the damage.
DAMAGE: dict[str, tuple[Callable[[str], Any], int | None, int, dict[str, list[Any]]]] = {
    "first item lost": (lose(1), 3, 2, {"gaps": [1]}),
    "last item lost": (lose(3), 3, 2, {"gaps": [3]}),
    "all items lost": (lose(1, 2, 3), 3, 0, {"gaps": [1, 2, 3]}),
    "counter ahead": (count_to(5), 5, 3, {"gaps": [4, 5]}),
    "counter lost": (partial(remove_counter, Ticket), 0, 3, {"beyond": [1, 2, 3]}),
    "item beyond": (copy(1, "5", **BY_HAND), 3, 4, {"beyond": [5]}),
    "number 0": (copy(1, "0", **BY_HAND), 3, 4, {"beyond": [0]}),
    "number below 0": (copy(1, "-1", **BY_HAND), 3, 4, {"beyond": ["-1"]}),
    "fraction": (copy(1, "1.5", **BY_HAND), 3, 4, {"beyond": ["1.5"]}),
    "fraction of another item's request": (copy(1, "1.5"), 3, 4, {"beyond": ["1.5"]}),
    "huge number": (copy(1, str(10**30), **BY_HAND), 3, 4, {"beyond": [10**30]}),
    "text in the counter": (count_to({"S": "three"}), None, 3, {"beyond": [1, 2, 3]}),
    "fraction in the counter": (count_to({"N": "3.5"}), None, 3, {"beyond": [1, 2, 3]}),
    "counter below 0": (count_to({"N": "-3"}), None, 3, {"beyond": [1, 2, 3]}),
    "three items of one request": (copy_twice, 5, 5, {"duplicates": [2, 4, 5]}),
}


@pytest.mark.parametrize(("act", "last", "items", "damage"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_found(
    series: str,
    act: Callable[[str], Any],
    last: int | None,
    items: int,
    damage: dict[str, list[Any]],
) -> None:
    act(series)

    report = only(series)

    assert (report.last, report.items, found(report)) == (last, items, damage)
    assert not report.is_sound


@pytest.mark.parametrize("owner", ["", "nothing", "#1", "{series}#2", "{series}#9", "{other}#1"])
def test_a_guard_that_names_another_requests_item_or_none_is_wrong(series: str, owner: str) -> None:
    other = new_series()
    ticket(other)
    key = Ticket.guard_key(series, "a")
    named = {"owner": {"S": owner.format(series=series, other=other)}} if owner else {}
    put_item(Ticket, {"series": {"S": key}, "number": {"N": "0"}} | named)

    for reports in (check(), check(series, other)):
        wrong = [(report.series, found(report)) for report in reports if not report.is_sound]
        assert wrong == [(other if "other" in owner else series, {"guards": [key]})]


# Items issued meanwhile ---------------------------------------------------------------------------


def test_items_issued_meanwhile_are_neither_counted_nor_missed(series: str) -> None:
    times = iter(range(3))  # when the first item was read

    [report] = check_series(Ticket, on_item=lambda _item: [ticket(series) for _ in times])

    assert (report.last, report.items, report.is_sound) == (3, 3, True)


GUARD = "the guard item of c"

#: What a scan of a series of three items returned, and the last number of the report, if there is
#: one.
SCANNED: dict[str, tuple[list[list[str]], int | None]] = {
    "items are missed": ([["", "counter", "3"]], 3),
    "guard items are missed": (
        [["", "counter", "3"], *([place(f"{at}"), "item", "", i] for at, i in enumerate("abc", 1))],
        3,
    ),
    "items are issued after their counter was read": (
        [["", "counter", "1"], [place("2"), "item", "", "b"], [place("3"), "item", "", "c"]],
        1,
    ),
    "an item beyond the counter is gone": (
        [["", "counter", "3"], [place("9"), "item", "", "i"]],
        3,
    ),
    "the series begins after the counters were read": ([[place("1"), "item", "", "a"]], None),
    "only a guard item is seen of it": ([[place("3"), "request", GUARD]], None),
    **{
        f"a guard item of the number {number}": (
            [["", "counter", "2"], [place(number), "request", GUARD]],
            2,
        )
        for number in ("2", "3", "none")
    },
}


@pytest.mark.parametrize(("entries", "last"), SCANNED.values(), ids=SCANNED)
def test_what_a_scan_shows_is_confirmed_before_it_is_reported(
    series: str, requests_sent: Requests, entries: list[list[str]], last: int | None
) -> None:
    key = Ticket.guard_key(series, "c")
    requests_sent.clear()

    report = report_on(series, *([key if part == GUARD else part for part in e] for e in entries))

    expected = SeriesReport(series, last=last, counts=Counts({"": last or 0}))
    assert report == (None if last is None else expected)
    # The counter once, the items that the scan missed, and an item or guard item that looks wrong.
    assert len(requests_sent.operations) <= 3


# Bounds -------------------------------------------------------------------------------------------


def test_a_huge_gap_is_counted(
    series: str, monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    monkeypatch.setattr(findings, "LISTED", 150)
    put_counter(Ticket, series, 10**15)
    requests_sent.clear()

    [report] = check(series)

    assert report.gaps.listed == list(range(4, 154))
    assert report.gaps.count == 10**15 - 3
    assert requests_sent.operations.count("TransactGetItems") < 20


def test_no_transaction_reads_more_than_25_items(
    series: str, requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_pages(monkeypatch, 1_000)
    monkeypatch.setattr(findings, "TOGETHER", READ_TOGETHER)
    for _ in range(27):
        ticket(series)
    put_counter(Ticket, series, 100)
    requests_sent.clear()

    [report] = check(series)

    assert report.gaps.listed == list(range(31, 101))
    reads = requests_sent.of("TransactGetItems")
    # The counter, the guard items, and the missing numbers, each time with the counter.
    assert [len(request["TransactItems"]) for request in reads] == [1, 25, 5, 25, 25, 23]


def test_memory_stays_bounded_for_a_long_series(
    monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    series, count = new_series(), 3_000
    counter = {"counterName": {"S": Ticket.counter_of(series).name}}

    def stored(number: int) -> list[Any]:
        request_id = f"request-{number}"
        key, owner = Ticket.guard_key(series, request_id), f"{series}#{number}"
        item = {"series": {"S": series}, "number": {"N": str(number)}}
        guard = {"series": {"S": key}, "number": {"N": "0"}, "owner": {"S": owner}}
        return [item | {"requestId": {"S": request_id}}, guard]

    def pages(table: str, *_attributes: Any, **_sizes: Any) -> Any:
        if table == Counter.table():
            yield [counter | {"currentValue": {"N": str(count)}}]
            return
        for start in range(1, count, 100):
            yield [item for number in range(start, start + 100) for item in stored(number)]

    monkeypatch.setattr("dynamo.client.bulk.pages", pages)
    tracemalloc.start()
    try:
        [report] = check()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (report.items, report.is_sound, requests_sent.operations) == (count, True, [])
    # All claims together take 4 MB.
    assert peak < 1_500_000


# The command --------------------------------------------------------------------------------------


def test_damage_is_reported_in_words_or_as_json(
    series: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "LISTED", 12)
    remove_item(Ticket, series, 2)
    put_counter(Ticket, series, 1_020)
    ticket(new_series())
    guard, error = Ticket.guard_key(series, "b"), "CommandError: 1 series is damaged.\n"

    out, err = run(LABEL)
    as_json = run(LABEL, "--json")

    short, long = sorted(out.splitlines(), key=len)
    assert short.endswith("  last 1, 1 item")
    assert (long, err) == (
        f"{series}  last 1020, 2 items; gaps: 2, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 1,008 more; "
        f"wrong guard items: {guard}",
        error,
    )
    shown = [item for item in map(json.loads, as_json[0].splitlines()) if item["gaps"]]
    gaps = {"gaps": [2, *range(4, 15)], "duplicates": [], "guards": [guard], "more": {"gaps": 1006}}
    assert (shown, as_json[1]) == ([{"series": series, "last": 1020, "items": 2} | gaps], error)


@pytest.mark.parametrize("name", ["tickets.Nothing", "Ticket", "accounts.User", ""])
def test_an_unknown_model_is_wrong_usage_and_the_models_are_listed(name: str) -> None:
    out, error, code = commands.run("checkseries", name)

    assert (out, code) == ("", 2)
    assert f"{name!r} is not a numbered model; there are: " in error
    assert LABEL in error
