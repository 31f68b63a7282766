"""Checking invoices: each damage is found, and nothing sound, whatever goes on meanwhile."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from invoices.invoicecheck import Sizes, check_invoices
from invoices.seriescheck import SeriesCheck, SeriesReport

from accounts.services import delete
from dynamo import findings
from dynamo.client import send
from invoices import seriescheck
from invoices.records import void
from sequences.models import Counter
from tests.factories import make_user
from tests.invoice_factories import (
    counter_of,
    issued,
    new_account,
    put_counter,
    put_invoice,
    remove_counter,
    remove_invoice,
    request_key,
    series,
    stored_invoices,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

SMALL = Sizes(segments=3, page_limit=3, run_length=5, guards_together=2)


@pytest.fixture
def account() -> str:
    """An account with three invoices, of the requests a, b and c."""
    made = new_account()
    for request_id in "abc":
        issued(made, request_id=request_id)
    return made


def check(account: str | None = None) -> list[SeriesReport]:
    return list(check_invoices(account, sizes=SMALL))


def found(report: SeriesReport) -> dict[str, list[Any]]:
    """What is wrong with a series, by kind."""
    kinds = {
        "gaps": report.gaps,
        "duplicates": report.duplicates,
        "beyond": report.beyond,
        "guards": report.guards,
    }
    return {kind: findings.listed for kind, findings in kinds.items() if findings}


def only(account: str) -> SeriesReport:
    """The report of the account's one series, the same from both ways to read it."""
    [report] = [each for each in check() if each.series.startswith(account)]
    assert check(account) == [report]
    return report


def run(*arguments: str) -> tuple[str, str]:
    """What the command prints, and the line with which it exits 1; empty where it succeeds."""
    out = StringIO()
    failures: list[CommandError] = []
    try:
        call_command("checkinvoices", *arguments, stdout=out)
    except CommandError as error:
        failures.append(error)
    assert [each.returncode for each in failures] in ([], [1])
    return out.getvalue(), "".join(map(str, failures))


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Call `act` once, when counters and invoices were read and nothing was judged."""
    run_check = SeriesCheck.run
    acts = iter([act])

    def run(self: SeriesCheck, entries: Any) -> SeriesReport | None:
        for each in acts:
            each()
        return run_check(self, entries)

    monkeypatch.setattr(SeriesCheck, "run", run)


# Sound series ------------------------------------------------------------------------------------


def test_no_series_at_all_are_sound() -> None:
    assert run("--json") == ("", "")


def test_sound_series_are_one_line_each_with_the_keys_of_the_contract(account: str) -> None:
    void(account, "2026-000002", "typo")
    unguarded = issued(account, day=date(2027, 1, 1))
    # As an earlier version stored it on request.
    remove_invoice(request_key(account, unguarded.request_id), 0)

    out, error = run("--json")

    assert error == ""
    assert [list(json.loads(line).items()) for line in out.splitlines()] == [
        [
            ("series", f"{account}#2026"),
            ("last", 3),
            ("issued", 2),
            ("voided", 1),
            ("gaps", []),
            ("duplicates", []),
        ],
        [
            ("series", f"{account}#2027"),
            ("last", 1),
            ("issued", 1),
            ("voided", 0),
            ("gaps", []),
            ("duplicates", []),
        ],
    ]


def test_sound_series_cost_two_scans_and_no_look_up(account: str, requests_sent: Requests) -> None:
    requests_sent.clear()

    list(check_invoices(sizes=Sizes(segments=2)))

    assert requests_sent.operations == ["Scan"] * 4
    assert all(request["ConsistentRead"] for request in requests_sent.requests)


def test_plain_counters_are_no_series() -> None:
    item = {"counterName": {"S": "orders"}, "currentValue": {"N": "7"}}
    send("PutItem", {"TableName": Counter.table(), "Item": item})

    assert check() == []


def test_many_series_over_many_pages_are_told_in_the_order_of_their_names() -> None:
    accounts = sorted(new_account() for _ in range(12))
    for count, each in enumerate(accounts):
        for _ in range(count % 4 + 1):
            issued(each)

    reports = check()

    assert [report.series for report in reports] == [series(each) for each in accounts]
    assert [report.issued for report in reports] == [1, 2, 3, 4] * 3
    assert all(report.is_sound for report in reports)


# One thing wrong at a time -----------------------------------------------------------------------


def test_an_invoice_deleted_by_hand_is_a_gap_and_its_guard_names_nothing(account: str) -> None:
    remove_invoice(series(account), 2)

    [report] = check()

    assert found(report) == {"gaps": [2], "guards": [request_key(account, "b")]}
    assert (report.last, report.issued) == (3, 2)
    # Read by its invoices, an account does not show the guard of one that is gone.
    assert [found(each) for each in check(account)] == [{"gaps": [2]}]


@pytest.mark.parametrize(("gone", "gaps"), [("1", [1]), ("3", [3]), ("123", [1, 2, 3])])
def test_gaps_at_the_beginning_and_the_end_are_found(
    account: str, gone: str, gaps: list[int]
) -> None:
    for number in gone:
        remove_invoice(series(account), number)
    for request_id in "abc":
        remove_invoice(request_key(account, request_id), 0)

    assert found(only(account)) == {"gaps": gaps}


def test_a_counter_put_ahead_by_hand_leaves_gaps(account: str) -> None:
    put_counter(account, 5)

    report = only(account)

    assert (report.last, found(report)) == (5, {"gaps": [4, 5]})


def test_an_invoice_put_by_hand_is_beyond_the_counter(account: str) -> None:
    put_invoice(stored_invoices(account)[0], number={"N": "5"}, requestId={"S": "by hand"})

    report = only(account)

    assert (report.last, report.issued, found(report)) == (3, 4, {"beyond": [5]})


def test_a_lost_counter_leaves_its_invoices_beyond(account: str) -> None:
    remove_counter(account)

    report = only(account)

    assert (report.last, report.issued, found(report)) == (0, 3, {"beyond": [1, 2, 3]})


def test_two_invoices_of_one_request_are_duplicates(account: str) -> None:
    put_invoice(stored_invoices(account)[1], number={"N": "4"})
    put_counter(account, 4)

    report = only(account)

    assert (report.issued, found(report)) == (4, {"duplicates": [2, 4]})


def test_two_invoices_of_one_request_in_two_years_are_duplicates(account: str) -> None:
    issued(account, day=date(2027, 1, 1), request_id="z")
    first = stored_invoices(account)[0]
    put_invoice(first, series={"S": series(account, 2027)}, number={"N": "2"})
    send(
        "UpdateItem",
        {
            "TableName": Counter.table(),
            "Key": {"counterName": {"S": counter_of(account, 2027).name}},
            "UpdateExpression": "SET currentValue = :two",
            "ExpressionAttributeValues": {":two": {"N": "2"}},
        },
    )

    assert [found(report) for report in check()] == [{"duplicates": [1]}, {"duplicates": [2]}]
    assert check(account) == check()


def test_more_invoices_of_one_request_than_one_reading_takes_are_all_duplicates() -> None:
    account = new_account()
    issued(account, request_id="a")
    [first] = stored_invoices(account)
    for number in range(2, 21):
        put_invoice(first, number={"N": str(number)})
    put_counter(account, 20)

    assert found(only(account)) == {"duplicates": list(range(1, 21))}


def test_the_same_request_id_of_two_accounts_is_no_duplicate(account: str) -> None:
    issued(new_account(), request_id="a")

    assert all(report.is_sound for report in check())


@pytest.mark.parametrize("number", [2, 9])
def test_a_guard_that_names_another_requests_invoice_or_none_is_wrong(
    account: str, number: int
) -> None:
    key = request_key(account, "a")
    item = {"series": {"S": key}, "number": {"N": "0"}}
    put_invoice(item, owner={"S": f"{series(account)}#{number}"}, digest={"S": "x"})

    [report] = check()

    assert found(report) == {"guards": [key]}


def test_a_guard_that_names_another_accounts_invoice_is_wrong(account: str) -> None:
    key = request_key(new_account(), "a")
    put_invoice({"series": {"S": key}, "number": {"N": "0"}}, owner={"S": f"{series(account)}#1"})

    assert [found(report) for report in check()] == [{"guards": [key]}]


@pytest.mark.parametrize(
    "guard", [{}, {"owner": {"S": "nothing"}}, {"owner": {"S": "#1"}}, {"owner": {"N": "1"}}]
)
def test_a_guard_that_names_nothing_stands_under_its_account(guard: dict[str, Any]) -> None:
    account = new_account()
    key = request_key(account, "a#b")
    put_invoice({"series": {"S": key}, "number": {"N": "0"}} | guard)

    [report] = check()

    assert (report.series, found(report)) == (account, {"guards": [key]})


@pytest.mark.parametrize("number", ["0", "-1", "1.5", str(10**30)])
def test_a_number_that_no_series_has_is_beyond(account: str, number: str) -> None:
    put_invoice(stored_invoices(account)[0], number={"N": number}, requestId={"S": "by hand"})

    report = only(account)

    [beyond] = found(report)["beyond"]
    assert str(beyond) == number
    assert report.issued == 4


@pytest.mark.parametrize("value", [{"S": "three"}, {"N": "3.5"}, {"N": "-3"}])
def test_a_counter_that_holds_no_number_is_told(account: str, value: dict[str, str]) -> None:
    put_counter(account, value)

    report = only(account)

    assert report.last is None
    assert not report.is_sound
    assert run("--json")[1] == "1 series is damaged."


def test_a_counter_whose_date_is_none_is_told_as_it_stops_the_series() -> None:
    account = new_account()
    put_counter(account, 0, "yesterday")

    assert [report.last for report in check()] == [None]


# Issuing goes on ---------------------------------------------------------------------------------


def test_what_is_issued_meanwhile_is_neither_counted_nor_missed(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: [issued(account) for _ in range(3)])

    [report] = check()

    assert (report.last, report.issued, report.is_sound) == (3, 3, True)


def test_a_gap_in_what_was_seen_is_none_where_the_invoice_is_there(account: str) -> None:
    entries = [[series(account), "", "counter", "3", "2026-03-14"]]

    report = SeriesCheck(series(account)).run(entries)

    assert report is not None
    assert (report.issued, report.is_sound) == (3, True)


def test_a_series_that_began_meanwhile_is_not_told() -> None:
    account = new_account()
    issued(account, request_id="a")
    at = seriescheck.position("1")
    entries = [
        [series(account), at, "invoice", "issued", "a"],
        [series(account), at, "request", request_key(account, "a")],
    ]

    assert SeriesCheck(series(account)).run(entries) is None
    assert SeriesCheck(series(account)).run(entries[1:]) is None


def test_a_guard_seen_without_its_invoice_is_confirmed_first(account: str) -> None:
    entries = [
        [series(account), "", "counter", "0", "2026-03-14"],
        [series(account), seriescheck.position("3"), "request", request_key(account, "c")],
    ]

    report = SeriesCheck(series(account)).run(entries)

    assert report is not None
    assert report.is_sound


def test_a_guard_seen_with_another_number_than_it_has_is_confirmed_first(account: str) -> None:
    entries = [
        [series(account), "", "counter", "3", "2026-03-14"],
        [series(account), seriescheck.position("2"), "request", request_key(account, "c")],
    ]

    report = SeriesCheck(series(account)).run(entries)

    assert report is not None
    assert report.is_sound


def test_a_guard_seen_without_a_name_is_confirmed_first(account: str) -> None:
    nowhere = [account, seriescheck.position("none"), "request", request_key(account, "c")]

    assert SeriesCheck(account).run([nowhere]) is None


def test_issuing_during_many_checks_is_never_a_false_alarm() -> None:
    accounts = [new_account() for _ in range(2)]

    def go_on(number: int) -> None:
        for count in range(60):
            issued(accounts[number % 2], request_id=f"{number}-{count}")

    checks = 0
    with ThreadPoolExecutor(4) as pool:
        issuing = [pool.submit(go_on, number) for number in range(4)]
        while not all(each.done() for each in issuing):
            reports = list(check_invoices(sizes=Sizes(segments=3, page_limit=40)))
            if checks % 4 == 1:
                reports += check_invoices(accounts[0])
            assert [found(report) for report in reports if not report.is_sound] == []
            for report in reports:
                assert report.issued + report.voided == report.last
            checks += 1

    for each in issuing:
        each.result()
    assert checks
    assert sum(report.issued for report in check()) == 240


# Bounds ------------------------------------------------------------------------------------------


def test_a_lost_million_is_told_without_being_listed(
    account: str, monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    monkeypatch.setattr(findings, "LISTED", 150)
    put_counter(account, 10**15)
    requests_sent.clear()

    [report] = check(account)

    assert report.gaps.listed == list(range(4, 154))
    assert len(report.gaps.listed) + report.gaps.more == 10**15 - 3
    assert requests_sent.operations.count("TransactGetItems") < 20


def test_no_transaction_reads_more_items_than_every_engine_takes(
    account: str, requests_sent: Requests
) -> None:
    for _ in range(27):
        issued(account)
    put_counter(account, 100)
    requests_sent.clear()

    [report] = check_invoices(account)

    assert report.gaps.listed == list(range(31, 101))
    sent = zip(requests_sent.operations, requests_sent.requests, strict=True)
    sizes = [len(request["TransactItems"]) for name, request in sent if name == "TransactGetItems"]
    # The counters of all years; the guards; the missing numbers, each time with the counter.
    assert sizes == [25] * 5 + [5] + [25, 5] + [25, 25, 23]


def test_the_others_of_a_long_list_are_a_number_in_the_answer(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "LISTED", 2)
    put_counter(account, 10)

    out, error = run("--json")

    shown = json.loads(out)
    assert (shown["gaps"], shown["more"]) == ([4, 5], {"gaps": 5})
    assert error == "1 series is damaged."


def test_many_invoices_beyond_are_bounded_too(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "LISTED", 4)
    first = stored_invoices(account)[0]
    for number in range(10, 35):
        put_invoice(first, number={"N": str(number)}, requestId={"S": str(number)})

    [report] = check()

    assert report.beyond.listed == [10, 11, 12, 13]
    assert report.beyond.more == 21


def test_memory_stays_bounded_however_long_a_series_is(monkeypatch: pytest.MonkeyPatch) -> None:
    account = new_account()
    put_counter(account, 12_000)

    def pages(table: str, *_attributes: Any, **_sizes: Any) -> Any:
        if table == Counter.table():
            yield [
                {
                    "counterName": {"S": counter_of(account).name},
                    "currentValue": {"N": "12000"},
                    "lastDate": {"S": "2026-03-14"},
                }
            ]
            return
        for start in range(1, 12_001, 1_000):
            yield [
                {
                    "series": {"S": series(account)},
                    "number": {"N": str(number)},
                    "status": {"S": "issued"},
                    "requestId": {"S": f"request-{number}"},
                }
                for number in range(start, start + 1_000)
            ]

    monkeypatch.setattr("dynamo.scan.pages", pages)
    tracemalloc.start()
    try:
        [report] = check_invoices(sizes=Sizes(run_length=500))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (report.issued, report.is_sound) == (12_000, True)
    # All claims at once would take some 10 MB.
    assert peak < 4_000_000


# The command -------------------------------------------------------------------------------------


def test_damage_is_said_in_words_and_ends_it_with_failure(account: str) -> None:
    remove_invoice(series(account), 2)
    remove_invoice(request_key(account, "b"), 0)
    issued(new_account())

    out, error = run()

    lines = sorted(out.splitlines(), key=len)
    assert lines[1] == f"{series(account)}  last 3, 2 issued, 0 voided; gaps: 2"
    assert lines[0].endswith("  last 1, 1 issued, 0 voided")
    assert error == "1 series is damaged."


def test_a_long_list_is_shortened_in_words(account: str) -> None:
    put_counter(account, 1_020)

    out, _error = run("--user", account)

    assert "gaps: 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 and 1,007 more" in out


def test_one_accounts_series_are_found_by_whatever_it_goes_by(account: str) -> None:
    user = make_user(username="ann", email="ann@example.com")
    issued(user.pk)
    remove_invoice(series(account), 2)

    for who in ("ann", "ann@example.com", user.pk):
        out, error = run("--user", who, "--json")
        assert json.loads(out)["series"] == series(user.pk)
        assert error == ""


def test_a_deleted_accounts_series_are_found_by_its_key() -> None:
    user = make_user()
    issued(user.pk)
    delete(user)

    out, error = run("--user", user.pk.upper(), "--json")

    assert (json.loads(out)["issued"], error) == (1, "")


def test_nobodys_series_are_an_error() -> None:
    assert run("--user", "nobody") == ("", "No account goes by 'nobody'.")


def test_a_missing_table_is_one_line(settings: Any) -> None:
    settings.DYNAMODB_TABLE_PREFIX = "absent-"

    out, error = run()

    assert out == ""
    assert "createtables" in error
