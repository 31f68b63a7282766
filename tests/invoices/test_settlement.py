"""Voiding, crediting, paying: what each changes.

Costs, refusals, repetitions, lost replies: `tests.site_operations`. Several at once:
`tests/interleavings/test_invoices.py`.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from dynamo.exceptions import DamagedItem
from dynamo.wire.values import ITEM_MAX_BYTES
from invoices.document.invoice import Invoice
from invoices.exceptions import AlreadyCredited, DateTooEarly, IsCreditNote, UnknownInvoice
from invoices.models import InvoiceItem, InvoiceState
from invoices.store.issuing import REQUEST_ID, today
from invoices.store.records import find_invoice, find_record
from invoices.store.settlement import credit, mark_paid, mark_unpaid, negated, void
from tests.invoice_factories import (
    assert_whole,
    issued,
    new_account,
    put_invoice,
    put_state,
    remove_invoice,
    stored_invoices,
)
from tests.items import scanned
from tests.requests import Requests

TODAY = today()
YEAR = TODAY.year
FIRST = f"{YEAR}-000001"
SECOND = f"{YEAR}-000002"
LATER = TODAY + timedelta(days=1)


@pytest.fixture
def invoice(account: str) -> Invoice:
    """An invoice with the label `FIRST`, which is due today."""
    return issued(account, day=TODAY, due_date=TODAY)


def stored() -> list[Any]:
    """Every invoice with its state."""
    return [scanned(model.table()) for model in (InvoiceItem, InvoiceState)]


# What cannot be done ------------------------------------------------------------------------------


def test_what_is_not_there_or_a_credit_note_is_neither_voided_nor_credited_nor_paid(
    account: str, invoice: Invoice
) -> None:
    credit(account, FIRST, "Returned")
    before = stored()

    for act, value in ((void, "W"), (credit, "R"), (mark_paid, LATER)):
        with pytest.raises(IsCreditNote):
            act(account, SECOND, value)
        for who, label in (
            (new_account(), FIRST),
            *((account, label) for label in (f"{YEAR}-000099", "2025-000001", "2026-1", "x", "")),
        ):
            with pytest.raises(UnknownInvoice):
                act(who, label, value)

    assert stored() == before
    # The error of `void` names the credit note.
    with pytest.raises(AlreadyCredited) as refused:
        void(account, FIRST, "Wrong")
    assert refused.value.credit_note == SECOND


def test_a_credit_note_is_not_dated_before_its_invoice(account: str) -> None:
    day = TODAY + timedelta(days=2)
    invoice = issued(account, day=day)

    with pytest.raises(DateTooEarly) as refused:
        credit(account, invoice.label, "Returned")

    assert refused.value.last == day
    assert_whole(account, 1, day.year)


def test_nobody_can_choose_the_request_id_of_a_credit_note() -> None:
    with pytest.raises(ValidationError, match="credit#"):
        REQUEST_ID.clean(f"credit#{FIRST}")


# Voiding ------------------------------------------------------------------------------------------


def test_a_voided_invoice_keeps_number_and_contents_and_shows_the_reason(
    account: str, invoice: Invoice
) -> None:
    void(account, FIRST, " typo ")

    voided = find_invoice(account, FIRST)
    assert voided == replace(invoice, status="voided", void_reason="typo")
    assert voided.voided_at is not None
    assert_whole(account, 1, YEAR)


@pytest.mark.fault_of("moto", "takes at most 405,000 bytes an item")
def test_the_largest_invoice_can_be_voided(account: str) -> None:
    size_bytes = ITEM_MAX_BYTES - InvoiceItem.reserved_bytes - 100
    invoice = issued(account, day=TODAY, note="x" * (size_bytes - 400))

    void(account, invoice.label, "𠮷" * 500)

    assert find_invoice(account, invoice.label).is_voided
    remove_invoice(invoice.series, 1)


# Crediting ----------------------------------------------------------------------------------------


def test_a_credit_note_cancels_an_invoice_under_the_next_number(
    account: str, requests_sent: Requests
) -> None:
    asks = {"due_date": TODAY + timedelta(days=14), "payment_terms": "Two weeks"}
    contents: dict[str, Any] = {"day": TODAY, "buyer_reference": "PO 7", "note": "Pay soon."} | asks
    invoice = issued(account, language="ja", **contents)

    note = credit(account, FIRST, " Returned ")

    assert note == replace(
        invoice,
        number=2,
        request_id=f"credit#{FIRST}",
        credits=FIRST,
        credit_reason="Returned",
        lines=negated(invoice.lines),
        totals=note.totals,
        # Nothing that asks for a payment.
        **{"note": "", "due_date": None, "payment_terms": ""},
    )
    assert (note.totals.net, note.totals.gross) == (-10_000, -11_900)
    assert find_invoice(account, SECOND) == note
    assert find_invoice(account, FIRST) == invoice
    record = find_record(account, FIRST)
    assert (record.credit_note, record.standing) == (SECOND, "credited")
    assert record.state.credited_by == note.request_id
    assert find_record(account, SECOND).standing == "credit_note"
    requests_sent.clear()
    assert credit(account, FIRST, "Another reason") == note
    assert requests_sent.operations == ["TransactGetItems", "GetItem"]


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


def test_a_currency_that_is_no_longer_in_use_can_still_be_credited(
    account: str, invoice: Invoice
) -> None:
    [item] = stored_invoices(account, YEAR)
    put_invoice(item, currency={"S": "DEM"})

    note = credit(account, FIRST, "Returned")

    assert (note.currency, note.totals.gross) == ("DEM", -11_900)


# Payments -----------------------------------------------------------------------------------------


def test_a_payment_leaves_the_invoice_unchanged_and_can_be_undone_and_noted_again(
    account: str, invoice: Invoice
) -> None:
    before = stored_invoices(account, YEAR)

    mark_paid(account, FIRST, TODAY)
    assert find_record(account, FIRST, today=LATER).standing == "paid"
    mark_unpaid(account, FIRST, TODAY)
    standings = [find_record(account, FIRST, today=day).standing for day in (TODAY, LATER)]
    mark_paid(account, FIRST, LATER)

    assert standings == ["open", "overdue"]
    assert find_record(account, FIRST).state.paid_on == LATER
    assert stored_invoices(account, YEAR) == before


def test_a_damaged_state_is_an_error(account: str, invoice: Invoice) -> None:
    put_state(account, FIRST, paidOn={"S": "soon"})

    with pytest.raises(DamagedItem, match="of invoicestates is damaged: paidOn"):
        find_record(account, FIRST)
