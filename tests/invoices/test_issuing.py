"""Issuing: number, invoice and guard in one transaction; 1, 2, 3 … and each request once."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.utils import timezone

from accounts.services import delete
from dynamo import deadline
from dynamo.client import send
from dynamo.exceptions import Rejected
from dynamo.signals import request_sent
from invoices import heads, issuing, pace
from invoices.documents import Invoice, draw_up, to_item
from invoices.exceptions import (
from dynamo.transaction import read_together
    AlreadyVoided,
    DamagedSeries,
    DateTooEarly,
    InvoiceTooLarge,
    RequestIdReused,
    UnknownInvoice,
)
from invoices.groups import Ask
from invoices.heads import Head, Known
from invoices.issuing import VOIDING_BYTES, issue
from invoices.models import InvoiceItem
from invoices.records import find_invoice, void
from invoices.sizes import ITEM_MAX_BYTES
from tests.factories import make_user
from tests.forks import in_a_child
from tests.invoice_factories import (
    DAY,
    SELLER,
    assert_whole,
    draft,
    issued,
    new_account,
    put_counter,
    put_invoice,
    remove_counter,
    remove_invoice,
    request_key,
    series,
    stored_counter,
    stored_invoices,
    stored_numbers,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def account() -> str:
    """An account that nobody has used."""
    return new_account()


@contextmanager
def together(account: str, first: Callable[[], Any]) -> Iterator[Callable[..., Future[Any]]]:
    """Let callers pile up behind `first`, whose transaction waits until the block ends.

    Yields a function that starts one more, `then(function)`, and comes back when it waits.
    """
    under_way, release = threading.Event(), threading.Event()

    def hold(**signal: Any) -> None:
        if signal["operation"] == "TransactWriteItems" and not under_way.is_set():
            under_way.set()
            release.wait(120)

    request_sent.connect(hold, weak=False)
    with ThreadPoolExecutor(64) as pool:
        begun = pool.submit(first)
        try:
            assert under_way.wait(120)
            request_sent.disconnect(hold)

            def then(function: Callable[[], Any]) -> Future[Any]:
                crowd = len(waiting())
                future = pool.submit(function)
                while len(waiting()) == crowd:
                    assert not future.done()
                    time.sleep(0.001)
                return future

            def waiting() -> tuple[Any, ...]:
                queue = issuing._combiner._queues.get(series(account))
                return queue.waiting if queue else ()

            yield then
        finally:
            request_sent.disconnect(hold)
            release.set()
        begun.result()


# Numbers -----------------------------------------------------------------------------------------


def test_invoices_are_numbered_from_one_without_a_gap(account: str) -> None:
    invoices = [issued(account) for _ in range(3)]

    assert [invoice.label for invoice in invoices] == ["2026-000001", "2026-000002", "2026-000003"]
    assert_whole(account, 3)


def test_what_is_stored_is_what_was_answered(account: str) -> None:
    invoice = issued(account, request_id="a", note="Thank you")

    assert find_invoice(account, invoice.label) == invoice
    assert invoice.seller == SELLER
    assert (invoice.totals.net, invoice.totals.gross) == (10_000, 11_900)
    assert stored_counter(account) == {
        "counterName": {"S": f"invoices#{series(account)}"},
        "currentValue": {"N": "1"},
        "lastDate": {"S": "2026-03-14"},
    }


def test_each_account_and_each_year_begins_at_one(account: str) -> None:
    other = new_account()

    labels = [
        issued(account).label,
        issued(other).label,
        issued(account, day=date(2027, 1, 1)).label,
        issued(account, day=date(2026, 12, 31)).label,
    ]

    assert labels == ["2026-000001", "2026-000001", "2027-000001", "2026-000002"]


@pytest.mark.parametrize(
    ("zone", "year"), [("UTC", 2026), ("Asia/Tokyo", 2027), ("America/New_York", 2026)]
)
def test_the_year_is_that_of_today_in_the_configured_time_zone(
    account: str, zone: str, year: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TIME_ZONE = zone
    now = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: now)

    with timezone.override("Pacific/Kiritimati"):  # as a page might set it for its visitor
        invoice = issued(account, day=None)

    assert invoice.series == series(account, year)
    assert stored_numbers(account, year) == [1]


def test_a_date_before_the_last_one_is_refused_and_burns_no_number(account: str) -> None:
    issued(account)

    with pytest.raises(DateTooEarly) as refused:
        issued(account, day=date(2026, 3, 13))

    assert (refused.value.issued_on, refused.value.last) == (date(2026, 3, 13), DAY)
    assert issued(account).number == 2
    assert_whole(account, 2)


def test_a_date_is_not_refused_for_an_invoice_that_is_only_remembered(
    account: str, requests_sent: Requests
) -> None:
    issued(account, day=date(2026, 12, 24))
    remove_invoice(series(account), 1)
    remove_counter(account)
    requests_sent.clear()

    assert issued(account).number == 1
    assert requests_sent.operations[0] == "GetItem"
    assert_whole(account, 1)


def test_the_head_is_read_once_more_only_before_a_date_is_refused(
    account: str, requests_sent: Requests
) -> None:
    issued(account)
    requests_sent.clear()

    issued(account)
    assert requests_sent.operations == ["TransactWriteItems"]

    with pytest.raises(DateTooEarly):
        issued(account, day=date(2026, 3, 13))
    # The head, then the guard: it may be a request that was issued before.
    assert requests_sent.operations == ["TransactWriteItems", "GetItem", "GetItem"]


def test_a_date_before_the_last_one_is_refused_by_who_remembers_nothing(account: str) -> None:
    issued(account, day=date(2026, 3, 10))
    issued(account, day=date(2026, 3, 12))
    issuing._heads._begin()

    with pytest.raises(DateTooEarly) as refused:
        issued(account, day=date(2026, 3, 11))

    assert refused.value.last == date(2026, 3, 12)
    assert_whole(account, 2)


def test_a_date_that_another_process_passed_is_refused(account: str) -> None:
    issued(account)
    issuing._heads.put(series(account), Known(Head(1, date(2026, 1, 1))))
    put_invoice(stored_invoices(account)[0], number={"N": "2"})
    put_counter(account, 2, "2026-03-15")

    with pytest.raises(DateTooEarly):
        issued(account)

    assert_whole(account, 2)


def test_callers_who_wait_together_are_numbered_by_their_dates(account: str) -> None:
    with together(account, lambda: issued(account, day=date(2026, 3, 10))) as then:
        later = then(lambda: issued(account, day=date(2026, 3, 12)))
        earlier = then(lambda: issued(account, day=date(2026, 3, 11)))
        too_early = then(lambda: issued(account, day=date(2026, 3, 9)))

    assert (earlier.result().number, later.result().number) == (2, 3)
    with pytest.raises(DateTooEarly):
        too_early.result()
    assert_whole(account, 3)


def test_a_date_before_the_last_one_of_a_group_is_refused(account: str) -> None:
    with together(account, lambda: issued(account, day=date(2026, 3, 10))) as then:
        for day in (12, 11):
            then(lambda day=day: issued(account, day=date(2026, 3, day)))

    with pytest.raises(DateTooEarly):
        issued(account, day=date(2026, 3, 11))

    assert_whole(account, 3)


def test_midnight_between_the_look_at_the_clock_and_the_commit_is_no_early_date(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued(account, day=date(2026, 3, 15))
    days = iter([date(2026, 3, 14), date(2026, 3, 15), date(2026, 3, 15)])
    monkeypatch.setattr("invoices.days.today", lambda: next(days))

    assert issued(account, day=None).issued_at == date(2026, 3, 15)
    assert_whole(account, 2)


# Two processes on one series ----------------------------------------------------------------------


def overtaken(account: str) -> None:
    """Issue two, the second of them after another process did."""
    issued(account)
    stale = issuing._heads.get(series(account))
    issued(account)
    assert stale
    issuing._heads.put(series(account), stale)
    issued(account)


def test_a_process_that_was_overtaken_looks_how_far_the_series_is_before_its_next_group(
    account: str, requests_sent: Requests
) -> None:
    overtaken(account)
    requests_sent.clear()

    assert issued(account).number == 4
    assert requests_sent.operations == ["GetItem", "TransactWriteItems"]


def test_a_process_that_looks_first_is_not_refused_for_what_a_rival_issued(
    account: str, requests_sent: Requests
) -> None:
    overtaken(account)
    put_invoice(stored_invoices(account)[0], number={"N": "4"})
    put_counter(account, 4)
    requests_sent.clear()

    assert issued(account).number == 5
    assert requests_sent.operations == ["GetItem", "TransactWriteItems"]


def test_when_the_rivalry_is_over_issuing_costs_one_request_again(
    account: str, requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "RIVALRY_SECONDS", 0.0)
    overtaken(account)
    requests_sent.clear()

    assert issued(account).number == 4
    assert requests_sent.operations == ["TransactWriteItems"]


# One request, one invoice ------------------------------------------------------------------------


def test_the_same_request_gets_the_stored_invoice(account: str) -> None:
    first = issued(account, request_id="a")
    issued(account)

    assert issued(account, request_id="a") == first
    assert_whole(account, 2)


def test_the_same_request_gets_it_also_in_a_process_that_knows_nothing(account: str) -> None:
    first = issued(account, request_id="a")
    issuing._heads._begin()

    assert issued(account, request_id="a") == first
    assert_whole(account, 1)


def test_the_same_request_gets_it_after_later_dates(account: str) -> None:
    first = issued(account, request_id="a")
    issued(account, day=date(2026, 5, 1))

    assert issued(account, request_id="a") == first
    assert_whole(account, 2)


def test_the_same_request_for_today_gets_it_in_the_next_year(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("invoices.days.today", lambda: date(2026, 12, 31))
    first = issued(account, request_id="a", day=None)
    monkeypatch.setattr("invoices.days.today", lambda: date(2027, 1, 1))

    assert issued(account, request_id="a", day=None) == first
    assert_whole(account, 1)
    assert_whole(account, 0, year=2027)


def test_the_same_request_gets_the_invoice_as_it_is_by_now(account: str) -> None:
    first = issued(account, request_id="a")
    void(account, first.label, "typo")

    assert issued(account, request_id="a").is_voided


@pytest.mark.parametrize(
    "other",
    [
        {"customer": "Eve"},
        {"description": "Other work"},
        {"note": "other"},
        {"currency": "USD"},
        {"day": date(2026, 3, 15)},
        {"day": None},
    ],
)
def test_the_same_request_id_with_other_contents_is_refused_and_burns_no_number(
    account: str, other: dict[str, Any]
) -> None:
    first = issued(account, request_id="a")

    with pytest.raises(RequestIdReused) as refused:
        issued(account, request_id="a", **other)

    assert (refused.value.request_id, refused.value.number) == ("a", first.label)
    assert issued(account).number == 2
    assert_whole(account, 2)


def test_a_request_id_of_another_account_means_nothing(account: str) -> None:
    first = issued(account, request_id="a")

    other = issued(new_account(), request_id="a", customer="Eve")

    assert (first.number, other.number) == (1, 1)
    assert first.series != other.series


@pytest.mark.parametrize("request_id", [None, "a", uuid.uuid4()], ids=["drawn", "text", "uuid"])
def test_every_issued_invoice_has_its_guard(
    account: str, request_id: str | uuid.UUID | None
) -> None:
    invoice = issued(account, request_id=request_id)

    guard = InvoiceItem(request_key(account, invoice.request_id), 0)
    stored = read_together([guard])[0]
    assert stored is not None
    assert stored["owner"] == {"S": f"{series(account)}#1"}
    assert issued(account, request_id=invoice.request_id) == invoice


def test_a_repeated_request_costs_one_refused_transaction_and_one_read(
    account: str, requests_sent: Requests
) -> None:
    issued(account, request_id="a")
    requests_sent.clear()

    issued(account, request_id="a")

    assert requests_sent.operations == ["TransactWriteItems", "TransactGetItems"]


def test_one_request_from_sixteen_threads_is_one_invoice(
    account: str, at_once: Callable[..., list[Any]]
) -> None:
    invoices = at_once(lambda _n: issued(account, request_id="a"), threads=16)

    assert {invoice.number for invoice in invoices} == {1}
    assert_whole(account, 1)


def test_of_a_group_only_the_one_with_the_reused_id_is_refused(account: str) -> None:
    issued(account, request_id="a")

    with together(account, lambda: issued(account)) as then:
        waiting = [then(lambda: issued(account)) for _ in range(2)]
        reused = then(lambda: issued(account, request_id="a", customer="Eve"))
        same = then(lambda: issued(account, request_id="a"))
        early = then(lambda: issued(account, day=date(2026, 1, 1)))
        last = then(lambda: issued(account))

    assert sorted(each.result().number for each in [*waiting, last]) == [3, 4, 5]
    assert same.result().number == 1
    with pytest.raises(RequestIdReused):
        reused.result()
    with pytest.raises(DateTooEarly):
        early.result()
    assert_whole(account, 5)


def test_of_a_group_only_the_one_that_dynamodb_rejects_fails(account: str) -> None:
    too_long = "x" * 3_000  # as a part of a key, and past the rule that `issue` holds
    invoice = draw_up(draft(), account, SELLER, DAY, too_long)
    ask = Ask(invoice, to_item(invoice), draft().digest(), 4_000)

    with together(account, lambda: issued(account)) as then:
        rejected = then(lambda: issuing._combiner(series(account), ask))
        others = [then(lambda: issued(account)) for _ in range(3)]

    with pytest.raises(Rejected):
        rejected.result()
    assert sorted(each.result().number for each in others) == [2, 3, 4]
    assert_whole(account, 4)


# What it costs -----------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
def test_issuing_costs_one_request_and_six_units(account: str, requests_sent: Requests) -> None:
    issued(account)
    requests_sent.clear()

    issued(account)

    assert requests_sent.operations == ["TransactWriteItems"]
    assert requests_sent.units == 6


def test_the_first_one_of_a_process_reads_the_counter(
    account: str, requests_sent: Requests
) -> None:
    issued(account)

    assert requests_sent.operations == ["GetItem", "TransactWriteItems"]
    assert requests_sent.requests[0]["ConsistentRead"]


def test_a_counter_that_another_process_moved_costs_one_refusal(
    account: str, requests_sent: Requests
) -> None:
    issued(account)
    issued(account)
    issuing._heads.put(series(account), Known(Head(1, DAY)))
    requests_sent.clear()

    assert issued(account).number == 3
    assert requests_sent.operations == ["TransactWriteItems"] * 2


def test_series_that_were_not_used_for_long_are_forgotten(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "REMEMBERED_SERIES", 2)
    for each in (account, new_account(), new_account()):
        issued(each)

    assert issuing._heads.get(series(account)) is None
    assert len(issuing._heads._heads) == 2
    assert issued(account).number == 2


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_a_thread_looks_at_what_is_remembered_does_not_block_the_child() -> None:
    remembered = heads.Heads()

    with remembered._lock:
        assert in_a_child(lambda: remembered.get("series")) == 0


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
def test_callers_who_wait_share_one_transaction(account: str, requests_sent: Requests) -> None:
    with together(account, lambda: issued(account)) as then:
        waiting = [then(lambda: issued(account)) for _ in range(15)]
        requests_sent.clear()

    assert sorted(each.result().number for each in waiting) == list(range(2, 17))
    writes = [each for each in requests_sent.operations if each == "TransactWriteItems"]
    assert len(writes) == 1
    assert requests_sent.units == 2 + 4 * 15
    assert_whole(account, 16)


def test_more_than_forty_nine_take_a_second_transaction(
    account: str, requests_sent: Requests
) -> None:
    with together(account, lambda: issued(account)) as then:
        waiting = [then(lambda: issued(account)) for _ in range(55)]
        requests_sent.clear()

    assert sorted(each.result().number for each in waiting) == list(range(2, 57))
    sizes = [len(each["TransactItems"]) for each in requests_sent.requests]
    assert sizes == [99, 13]
    assert_whole(account, 56)


# Sizes -------------------------------------------------------------------------------------------


def of_size(size_bytes: int) -> dict[str, Any]:
    """Changes of a draft that make its item about so large."""
    return {"note": "x" * (size_bytes - 400)}


def test_forty_nine_waiting_invoices_of_100_kb_are_split(
    account: str, requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As long as a slow engine may take for 25 of them.
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 60.0)
    with together(account, lambda: issued(account)) as then:
        waiting = [then(lambda: issued(account, **of_size(100_000))) for _ in range(49)]
        requests_sent.clear()

    try:
        assert sorted(each.result().number for each in waiting) == list(range(2, 51))
        writes = [each for each in requests_sent.requests if "TransactItems" in each]
        assert {len(each["TransactItems"]) for each in writes} == {5, 3}
        assert len(writes) == 25
        assert_whole(account, 50)
    finally:
        for number in range(1, 51):
            remove_invoice(series(account), number)


@pytest.mark.fault_of("moto", "takes at most 405,000 bytes an item")
def test_the_largest_invoice_can_be_issued_and_voided(account: str) -> None:
    invoice = issued(account, **of_size(ITEM_MAX_BYTES - VOIDING_BYTES - 100))

    void(account, invoice.label, "𠮷" * 500)

    assert find_invoice(account, invoice.label).is_voided
    remove_invoice(series(account), 1)


def test_an_item_over_400_kb_is_refused_before_anything_is_sent(
    account: str, requests_sent: Requests
) -> None:
    with pytest.raises(InvoiceTooLarge) as refused:
        issued(account, **of_size(ITEM_MAX_BYTES + 500))

    assert refused.value.size_bytes > refused.value.limit_bytes
    assert requests_sent.operations == []


# Damaged series ----------------------------------------------------------------------------------


def test_an_invoice_beyond_the_counter_stops_the_series_with_its_name(
    account: str, requests_sent: Requests
) -> None:
    issued(account)
    put_invoice(stored_invoices(account)[0], number={"N": "2"}, requestId={"S": "by hand"})
    requests_sent.clear()

    with pytest.raises(DamagedSeries) as refused:
        issued(account)

    assert refused.value.series == series(account)
    assert requests_sent.operations == ["TransactWriteItems", "TransactGetItems"]
    counter = stored_counter(account)
    assert counter is not None
    assert counter["currentValue"] == {"N": "1"}


def test_of_a_damaged_series_the_stored_invoices_are_still_answered(account: str) -> None:
    first = issued(account, request_id="a")
    put_invoice(stored_invoices(account)[0], number={"N": "2"}, requestId={"S": "by hand"})

    assert issued(account, request_id="a") == first


def test_all_who_wait_for_a_damaged_series_are_told(account: str) -> None:
    with together(account, lambda: issued(account)) as then:
        put_invoice({"series": {"S": series(account)}, "number": {"N": "2"}})
        waiting = [then(lambda: issued(account)) for _ in range(3)]

    for each in waiting:
        with pytest.raises(DamagedSeries):
            each.result()


def test_a_lost_counter_stops_the_series(account: str) -> None:
    issued(account)
    remove_counter(account)

    with pytest.raises(DamagedSeries):
        issued(account)

    assert stored_counter(account) is None


@pytest.mark.parametrize(
    ("value", "last_date"),
    [
        ({"S": "seven"}, "2026-01-01"),
        ({"N": "1.5"}, "2026-01-01"),
        ({"N": "-3"}, "2026-01-01"),
        (1, "yesterday"),
        (1, {"N": "20260101"}),
    ],
)
def test_a_counter_that_holds_no_number_or_date_stops_the_series(
    account: str, value: Any, last_date: Any
) -> None:
    put_counter(account, value, last_date)
    before = stored_counter(account)

    with pytest.raises(DamagedSeries):
        issued(account)

    assert stored_counter(account) == before
    assert stored_numbers(account) == []


def test_a_counter_damaged_while_a_process_remembers_it_stops_the_series(account: str) -> None:
    issued(account)
    put_counter(account, {"S": "seven"})

    with pytest.raises(DamagedSeries):
        issued(account)

    assert stored_numbers(account) == [1]


def test_a_counter_put_at_zero_counts_from_one(account: str) -> None:
    put_counter(account, 0)

    assert issued(account).number == 1
    assert_whole(account, 1)


def test_a_counter_put_far_ahead_goes_on_exactly(account: str) -> None:
    put_counter(account, 10**14)

    invoice = issued(account)

    assert invoice.number == 10**14 + 1
    assert find_invoice(account, "2026-100000000000001") == invoice


@pytest.mark.parametrize(
    "guard",
    [
        {},
        {"owner": {"S": "nothing"}},
        {"owner": {"S": "#1"}},
        {"owner": {"N": "1"}},
        {"owner": {"S": "{series}#9"}},
        {"owner": {"S": "{series}#1"}},  # another request's invoice
        {"owner": {"S": "{guard}#0"}},  # itself
    ],
)
def test_a_guard_that_names_no_invoice_of_its_request_is_damage(
    account: str, guard: dict[str, Any]
) -> None:
    issued(account)
    owner = guard.get("owner", {})
    if "S" in owner:
        names = {"series": series(account), "guard": request_key(account, "a")}
        guard = {"owner": {"S": owner["S"].format(**names)}}
    key = {"series": {"S": request_key(account, "a")}, "number": {"N": "0"}}
    put_invoice(key | guard)

    with together(account, lambda: issued(account)) as then:
        damaged = then(lambda: issued(account, request_id="a"))
        other = then(lambda: issued(account))

    assert other.result().number == 3
    with pytest.raises(DamagedSeries):
        damaged.result()
    assert_whole(account, 3)


# Voiding, and what stays -------------------------------------------------------------------------


def test_voiding_keeps_number_and_contents_and_says_why(account: str) -> None:
    invoice = issued(account)

    voided = void(account, invoice.label, " typo ")

    assert (voided.status, voided.void_reason) == ("voided", "typo")
    assert voided.voided_at is not None
    assert find_invoice(account, invoice.label) == voided
    assert_whole(account, 1)


@pytest.mark.parametrize("reason", ["other", "typo"])
def test_voiding_twice_is_refused(account: str, reason: str) -> None:
    invoice = issued(account)
    voided = void(account, invoice.label, "typo")

    with pytest.raises(AlreadyVoided) as refused:
        void(account, invoice.label, reason)

    assert refused.value.reason == "typo"
    assert find_invoice(account, invoice.label) == voided


def test_voiding_without_a_reason_is_refused(account: str) -> None:
    invoice = issued(account)

    with pytest.raises(ValueError, match="reason"):
        void(account, invoice.label, "  ")

    assert not find_invoice(account, invoice.label).is_voided


@pytest.mark.parametrize("label", ["2026-000002", "2025-000001", "2026-1", "nonsense", ""])
def test_voiding_what_is_not_there_is_refused_and_makes_nothing(account: str, label: str) -> None:
    issued(account)

    with pytest.raises(UnknownInvoice):
        void(account, label, "typo")

    assert stored_numbers(account) == [1]


def test_an_invoice_of_another_account_cannot_be_voided(account: str) -> None:
    invoice = issued(account)

    with pytest.raises(UnknownInvoice):
        void(new_account(), invoice.label, "typo")

    assert not find_invoice(account, invoice.label).is_voided


@pytest.mark.fault_of("moto", "reports other capacity")
def test_voiding_costs_one_request(account: str, requests_sent: Requests) -> None:
    invoice = issued(account)
    requests_sent.clear()

    void(account, invoice.label, "typo")

    assert (requests_sent.operations, requests_sent.units) == (["UpdateItem"], 1)


def test_invoices_of_a_deleted_account_stay() -> None:
    user = make_user()
    invoice = issue(draft(), account=user.pk, seller=SELLER)

    delete(user)

    assert find_invoice(user.pk, invoice.label) == invoice
    assert_whole(user.pk, 1)


def test_every_read_is_strongly_consistent(account: str, requests_sent: Requests) -> None:
    invoice: Invoice = issued(account, request_id="a")
    issued(account, request_id="a")
    find_invoice(account, invoice.label)
    stored = send(
        "GetItem",
        {
            "TableName": InvoiceItem.table(),
            "Key": {"series": {"S": series(account)}, "number": {"N": "1"}},
        },
    )

    assert stored["Item"]
    reads = [
        request
        for operation, request in zip(requests_sent.operations, requests_sent.requests, strict=True)
        if operation == "GetItem"
    ]
    assert reads
    assert all(request["ConsistentRead"] for request in reads)
