"""Credit notes: at most one for an invoice, never for a voided one, whatever the network does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given, strategies as st

from invoices.document.amounts import Line, totals
from invoices.document.invoice import Invoice
from invoices.exceptions import (
    AlreadyCredited,
    AlreadyVoided,
    DateTooEarly,
    IsCreditNote,
    UnknownInvoice,
)
from invoices.store.issuing import REQUEST_ID, issue_invoice, today
from invoices.store.records import find_invoice, find_record
from invoices.store.settlement import credit, negated, void
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import (
    SELLER,
    assert_whole,
    draft,
    issued,
    new_account,
    put_invoice,
    stored_invoices,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

TODAY = today()
YEAR = TODAY.year
FIRST, SECOND = f"{YEAR}-000001", f"{YEAR}-000002"


@pytest.fixture
def account() -> str:
    return new_account()


@pytest.fixture
def invoice(account: str) -> Invoice:
    """An invoice with the label `FIRST`."""
    return issued(account, day=TODAY)


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_credit_note_cancels_an_invoice_under_the_next_number(
    account: str, requests_sent: Requests
) -> None:
    invoice = issue_invoice(
        draft(
            day=TODAY,
            note="Please pay soon.",
            due_date=TODAY + timedelta(days=14),
            payment_terms="Two weeks",
            buyer_reference="PO 7",
        ),
        account=account,
        seller=SELLER,
        language="ja",
    )
    requests_sent.clear()

    note = credit(account, FIRST, " Returned ")

    assert requests_sent.operations == ["TransactGetItems", "TransactWriteItems"]
    assert requests_sent.units == 6 + 10
    assert (note.label, note.credits, note.credit_reason) == (SECOND, FIRST, "Returned")
    assert (note.issued_at, note.language) == (TODAY, "ja")
    assert (note.seller, note.customer) == (invoice.seller, invoice.customer)
    assert (note.note, note.due_date, note.payment_terms) == ("", None, "")
    assert note.buyer_reference == "PO 7"
    assert (note.totals.net, note.totals.gross) == (-10_000, -11_900)
    assert find_invoice(account, SECOND) == note
    assert find_invoice(account, FIRST) == invoice
    record = find_record(account, FIRST)
    assert (record.credit_note, record.standing) == (SECOND, "credited")
    assert record.state.credited_by == note.request_id == f"credit#{FIRST}"
    assert find_record(account, SECOND).standing == "credit_note"


@pytest.mark.parametrize("reason", ["Returned", "Another one"])
def test_a_second_call_returns_the_first_credit_note_and_writes_nothing(
    account: str, invoice: Invoice, requests_sent: Requests, reason: str
) -> None:
    note = credit(account, FIRST, "Returned")
    requests_sent.clear()

    again = credit(account, FIRST, reason)

    assert again == note
    assert requests_sent.operations == ["TransactGetItems", "GetItem"]
    assert_whole(account, 2, YEAR)


@pytest.mark.stress
def test_an_invoice_that_is_credited_many_times_at_once_has_one_credit_note(
    account: str, invoice: Invoice, at_once: Callable[..., list[Any]]
) -> None:
    notes = at_once(lambda number: credit(account, FIRST, f"Reason {number % 3}"))

    assert {note.label for note in notes} == {SECOND}
    assert len({note.credit_reason for note in notes}) == 1
    assert_whole(account, 2, YEAR)


@pytest.mark.stress
@pytest.mark.parametrize("attempt", range(5))
def test_an_invoice_that_is_voided_and_credited_at_once_is_one_of_both(
    account: str, invoice: Invoice, at_once: Callable[..., list[Any]], attempt: int
) -> None:
    def act(number: int) -> str:
        try:
            if number % 2:
                void(account, FIRST, "Wrong")
                return "voided"
            credit(account, FIRST, "Returned")
        except (AlreadyVoided, AlreadyCredited) as error:
            return type(error).__name__
        return "credited"

    ends = set(at_once(act))

    record = find_record(account, FIRST)
    if record.invoice.is_voided:
        assert ends == {"voided", "AlreadyVoided"}
        assert (record.credit_note, record.state.credited_by) == ("", None)
        assert_whole(account, 1, YEAR)
    else:
        assert ends == {"credited", "AlreadyCredited"}
        assert_whole(account, 2, YEAR)


def test_an_invoice_that_is_voided_meanwhile_is_not_credited(
    account: str, invoice: Invoice, proxy: FaultProxy
) -> None:
    proxy.plan("TransactWriteItems", Meanwhile(lambda: void(account, FIRST, "Wrong")))

    with pytest.raises(AlreadyVoided) as refused:
        credit(account, FIRST, "Returned")

    assert refused.value.reason == "Wrong"
    assert find_record(account, FIRST).state.credited_by is None
    assert_whole(account, 1, YEAR)


def test_an_invoice_that_is_credited_meanwhile_is_not_voided(
    account: str, invoice: Invoice, proxy: FaultProxy
) -> None:
    proxy.plan("TransactWriteItems", Meanwhile(lambda: credit(account, FIRST, "Returned")))

    with pytest.raises(AlreadyCredited) as refused:
        void(account, FIRST, "Wrong")

    assert (refused.value.number, refused.value.credit_note) == (FIRST, SECOND)
    assert not find_invoice(account, FIRST).is_voided


def test_a_voided_invoice_is_not_credited(account: str, invoice: Invoice) -> None:
    void(account, FIRST, "Wrong")

    with pytest.raises(AlreadyVoided) as refused:
        credit(account, FIRST, "Returned")

    assert refused.value.reason == "Wrong"
    assert_whole(account, 1, YEAR)


def test_a_credit_note_can_be_neither_credited_nor_voided(account: str, invoice: Invoice) -> None:
    note = credit(account, FIRST, "Returned")

    for act in (credit, void):
        with pytest.raises(IsCreditNote) as refused:
            act(account, note.label, "Wrong")
        assert refused.value.number == SECOND

    assert find_invoice(account, SECOND) == note
    assert_whole(account, 2, YEAR)


@pytest.mark.parametrize("label", [SECOND, "2025-000001", "2026-1", "nonsense", ""])
def test_an_unknown_invoice_is_not_credited(account: str, invoice: Invoice, label: str) -> None:
    for who, which in ((account, label), (new_account(), FIRST)):
        with pytest.raises(UnknownInvoice):
            credit(who, which, "Returned")

    assert_whole(account, 1, YEAR)


@pytest.mark.parametrize("reason", ["", " \u2060 ", "x" * 501, "a\u202eb"])
def test_a_reason_that_cannot_be_printed_is_rejected_before_any_request(
    account: str, invoice: Invoice, requests_sent: Requests, reason: str
) -> None:
    requests_sent.clear()

    with pytest.raises(ValidationError):
        credit(account, FIRST, reason)

    assert requests_sent.operations == []


def test_a_credit_note_is_not_dated_before_its_invoice(account: str) -> None:
    tomorrow = TODAY + timedelta(days=2)
    invoice = issued(account, day=tomorrow)

    with pytest.raises(DateTooEarly) as refused:
        credit(account, invoice.label, "Returned")

    assert refused.value.last == tomorrow
    assert_whole(account, 1, tomorrow.year)


# Their days always differ.
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_credit_note_is_dated_today_in_the_time_zone_of_the_seller(
    account: str, zone: str
) -> None:
    invoice = issued(account, day=TODAY - timedelta(days=2))

    note = credit(account, invoice.label, "Returned", time_zone=zone)

    assert note.issued_at == today(zone)


def test_an_invoice_of_last_year_is_credited_in_the_series_of_this_year(account: str) -> None:
    old = issued(account, day=TODAY.replace(year=YEAR - 1, day=1))

    note = credit(account, old.label, "Returned")

    assert (note.label, note.credits) == (FIRST, f"{YEAR - 1}-000001")
    assert find_record(account, old.label).credit_note == FIRST


def test_a_currency_that_is_no_longer_in_use_can_still_be_credited(account: str) -> None:
    invoice = issued(account, day=TODAY)
    [item] = stored_invoices(account, YEAR)
    put_invoice(item, currency={"S": "DEM"})

    note = credit(account, invoice.label, "Returned")

    assert (note.currency, note.totals.gross) == ("DEM", -11_900)


def test_nobody_can_choose_the_request_id_of_a_credit_note() -> None:
    with pytest.raises(ValidationError, match="credit#"):
        REQUEST_ID.clean(f"credit#{FIRST}")


LINES = st.builds(
    Line,
    description=st.just("Work"),
    quantity=st.decimals("-999", "999", places=3).filter(bool),
    unit_price=st.decimals("-9999", "9999", places=4),
    vat_rate=st.sampled_from([Decimal(rate) for rate in ("0", "5.5", "7", "19", "20")]),
)


@given(
    lines=st.lists(LINES, min_size=1, max_size=9),
    currency=st.sampled_from(["EUR", "JPY", "KWD"]),
    with_tax=st.booleans(),
)
def test_the_sums_of_a_credit_note_are_those_of_its_invoice_below_zero(
    lines: list[Line], currency: str, with_tax: bool
) -> None:
    sums = totals(lines, currency, with_tax)

    opposite = totals(negated(lines), currency, with_tax)

    assert (opposite.net, opposite.vat, opposite.gross) == (-sums.net, -sums.vat, -sums.gross)
    assert [share.vat for share in opposite.shares] == [-share.vat for share in sums.shares]
