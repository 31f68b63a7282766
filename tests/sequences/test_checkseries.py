"""The check of series finds each kind of damage, and reports nothing else."""

import json
import tracemalloc
from collections import Counter as Counts
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dynamo._internal.checking import findings
from dynamo._internal.client.sending import send
from dynamo.transactions import READ_TOGETHER
from sequences._internal.check import SeriesCheck, SeriesReport, check_series, position as place
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
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

LABEL = "tests.numbered.Ticket"


@pytest.fixture(autouse=True)
def _little_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SEGMENTS": 3, "PAGE_LIMIT": 3, "TOGETHER": 2}.items():
        monkeypatch.setattr(findings, name, value)


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
    return SeriesCheck(Ticket, series, "").run([[series, *each] for each in entries])


def found(report: SeriesReport) -> dict[str, list[Any]]:
    """The damage of a series, by kind."""
    return {kind: findings.listed for kind, findings in report.findings.items() if findings}


def only(series: str) -> SeriesReport:
    """The report of the series, which must be the same from a scan and from queries."""
    [report] = [each for each in check() if each.series == series]
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
    # Earlier versions stored items without guard items.
    remove_item(Ticket, Ticket.guard_key(series, "a"), 0)

    out, error = run(LABEL, "--json")

    assert error == ""
    document = {"series": series, "last": 1, "items": 1, "gaps": [], "duplicates": []}
    assert out == f"{json.dumps(document)}\n"


def test_a_check_without_damage_costs_two_scans_and_no_other_read(
    series: str, requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests_sent.clear()

    monkeypatch.setattr(findings, "PAGE_LIMIT", None)

    check()

    assert requests_sent.operations == ["Scan"] * 6
    assert all(request["ConsistentRead"] for request in requests_sent.requests)


def test_some_series_are_checked_without_a_scan(series: str, requests_sent: Requests) -> None:
    other = new_series()
    ticket(other)
    remove_item(Ticket, series, 2)
    requests_sent.clear()

    reports = list(check_series(Ticket, series=[other, series, "nothing", series]))

    assert "Scan" not in requests_sent.operations
    assert sorted((each.series, each.gaps.listed) for each in reports) == sorted(
        [(other, []), (series, [2])]
    )


def test_plain_counters_and_those_of_other_models_are_not_series_of_a_model() -> None:
    item = {"counterName": {"S": "testTickets"}, "currentValue": {"N": "7"}}
    send("PutItem", {"TableName": Counter.table(), "Item": item})
    entry(new_series(), "2026-03-14")

    assert check() == []


def test_many_series_with_the_same_request_ids_are_reported_in_the_order_of_their_names() -> None:
    names = sorted(new_series() for _ in range(12))
    for count, each in enumerate(names):
        for number in range(count % 4 + 1):
            ticket(each, request_id=f"{number}")

    reports = check()  # many pages

    assert [report.series for report in reports] == names
    assert [report.items for report in reports] == [1, 2, 3, 4] * 3
    assert all(report.is_sound for report in reports)


# Damage -------------------------------------------------------------------------------------------


def test_an_item_deleted_by_hand_is_a_gap_and_its_guard_names_nothing(series: str) -> None:
    remove_item(Ticket, series, 2)

    [report] = check()

    assert found(report) == {"gaps": [2], "guards": [Ticket.guard_key(series, "b")]}
    assert (report.last, report.items) == (3, 2)
    # Queries do not find the guard item of a missing item.
    assert [found(each) for each in check(series)] == [{"gaps": [2]}]


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
DAMAGE: dict[str, tuple[Callable[[str], Any], int, int, dict[str, list[Any]]]] = {
    "first item lost": (lose(1), 3, 2, {"gaps": [1]}),
    "last item lost": (lose(3), 3, 2, {"gaps": [3]}),
    "all items lost": (lose(1, 2, 3), 3, 0, {"gaps": [1, 2, 3]}),
    "counter ahead": (count_to(5), 5, 3, {"gaps": [4, 5]}),
    "counter lost": (partial(remove_counter, Ticket), 0, 3, {"beyond": [1, 2, 3]}),
    "item beyond": (copy(1, "5", **BY_HAND), 3, 4, {"beyond": [5]}),
    "number 0": (copy(1, "0", **BY_HAND), 3, 4, {"beyond": [0]}),
    "number below 0": (copy(1, "-1", **BY_HAND), 3, 4, {"beyond": ["-1"]}),
    "fraction": (copy(1, "1.5", **BY_HAND), 3, 4, {"beyond": ["1.5"]}),
    "huge number": (copy(1, str(10**30), **BY_HAND), 3, 4, {"beyond": [10**30]}),
    "three items of one request": (copy_twice, 5, 5, {"duplicates": [2, 4, 5]}),
}


@pytest.mark.parametrize(("act", "last", "items", "damage"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_found(
    series: str, act: Callable[[str], Any], last: int, items: int, damage: dict[str, list[Any]]
) -> None:
    act(series)

    report = only(series)

    assert (report.last, report.items, found(report)) == (last, items, damage)


@pytest.mark.parametrize("owner", ["", "nothing", "#1", "{series}#2", "{series}#9", "{other}#1"])
def test_a_guard_that_names_another_requests_item_or_none_is_wrong(series: str, owner: str) -> None:
    other = new_series()
    ticket(other)
    key = Ticket.guard_key(series, "a")
    named = {"owner": {"S": owner.format(series=series, other=other)}} if owner else {}
    put_item(Ticket, {"series": {"S": key}, "number": {"N": "0"}} | named)

    wrong = [(report.series, found(report)) for report in check() if not report.is_sound]
    assert wrong == [(other if "other" in owner else series, {"guards": [key]})]


@pytest.mark.parametrize("value", [{"S": "three"}, {"N": "3.5"}, {"N": "-3"}])
def test_a_counter_without_a_number_is_reported(series: str, value: dict[str, str]) -> None:
    put_counter(Ticket, series, value)

    report = only(series)

    assert report.last is None
    assert not report.is_sound


# Items issued meanwhile ---------------------------------------------------------------------------


def test_items_issued_meanwhile_are_neither_counted_nor_missed(series: str) -> None:
    times = iter(range(3))  # when the first item was read

    [report] = check_series(Ticket, on_item=lambda _item: [ticket(series) for _ in times])

    assert (report.last, report.items, report.is_sound) == (3, 3, True)


def test_an_item_that_the_scan_missed_is_not_a_gap(series: str) -> None:
    report = report_on(series, ["", "counter", "3"])

    assert report == SeriesReport(series, last=3, counts=Counts({"": 3}))


def test_items_issued_after_their_counter_was_read_are_not_beyond_it(
    series: str, requests_sent: Requests
) -> None:
    ids = {"4": "d", "5": "e"}
    for each in ids.values():
        ticket(series, request_id=each)
    requests_sent.clear()

    issued = [[place(number), "item", "", ids[number]] for number in ids]
    report = report_on(series, ["", "counter", "3"], *issued)

    assert report == SeriesReport(series, last=3, counts=Counts({"": 3}))
    # The counter, once, and the numbers 1 to 3, whose items the scan missed.
    assert requests_sent.operations == ["TransactGetItems"] * 2


def test_a_series_that_began_meanwhile_is_not_reported() -> None:
    series = new_series()
    ticket(series, request_id="a")
    at = place("1")
    guard = [at, "request", Ticket.guard_key(series, "a")]

    assert report_on(series, [at, "item", "", "a"], guard) is None
    assert report_on(series, guard) is None


@pytest.mark.parametrize("at", ["2", "3", "none"])
def test_a_guard_that_looks_wrong_is_confirmed_first(series: str, at: str) -> None:
    guard = [place(at), "request", Ticket.guard_key(series, "c")]

    report = report_on(series, ["", "counter", "2"], guard)

    assert report is not None
    assert report.is_sound


# Bounds -------------------------------------------------------------------------------------------


def test_a_huge_gap_is_reported_as_a_count(
    series: str, monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    monkeypatch.setattr(findings, "LISTED", 150)
    put_counter(Ticket, series, 10**15)
    requests_sent.clear()

    [report] = check(series)

    assert report.gaps.listed == list(range(4, 154))
    assert report.gaps.count == 10**15 - 3
    assert requests_sent.operations.count("TransactGetItems") < 20


def test_no_transaction_reads_more_items_than_every_engine_takes(
    series: str, requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "PAGE_LIMIT", None)
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


def test_the_list_of_items_beyond_the_counter_is_limited(
    series: str, monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    monkeypatch.setattr(findings, "LISTED", 1)
    for number in "789":
        copy(1, number, **BY_HAND)(series)
    requests_sent.clear()

    [report] = check()

    assert (report.beyond.listed, report.beyond.more) == ([7], 2)
    # The counter, the listed item, and its twin.
    assert requests_sent.operations.count("TransactGetItems") == 3


def test_memory_stays_bounded_for_a_long_series(monkeypatch: pytest.MonkeyPatch) -> None:
    series, count = new_series(), 12_000
    counter = {"counterName": {"S": Ticket.counter_of(series).name}}
    item = {"series": {"S": series}}

    def pages(table: str, *_attributes: Any, **_sizes: Any) -> Any:
        if table == Counter.table():
            yield [counter | {"currentValue": {"N": str(count)}}]
            return
        for start in range(1, count, 1_000):
            yield [
                item | {"number": {"N": str(each)}, "requestId": {"S": f"request-{each}"}}
                for each in range(start, start + 1_000)
            ]

    monkeypatch.setattr("dynamo._internal.bulk.pages", pages)
    tracemalloc.start()
    try:
        [report] = check()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (report.items, report.is_sound) == (count, True)
    # All claims together would take about 10 MB.
    assert peak < 4_000_000


# The command --------------------------------------------------------------------------------------


def test_damage_is_reported_in_words_or_as_json_and_exits_with_1(
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
    shown = [each for each in map(json.loads, as_json[0].splitlines()) if each["gaps"]]
    gaps = {"gaps": [2, *range(4, 15)], "duplicates": [], "guards": [guard], "more": {"gaps": 1006}}
    assert (shown, as_json[1]) == ([{"series": series, "last": 1020, "items": 2} | gaps], error)


@pytest.mark.parametrize("name", ["tickets.Nothing", "Ticket", "accounts.User", ""])
def test_an_unknown_model_is_wrong_usage_and_the_models_are_listed(name: str) -> None:
    out, error, code = commands.run("checkseries", name)

    assert (out, code) == ("", 2)
    assert f"{name!r} is not a numbered model; there are: " in error
    assert LABEL in error
