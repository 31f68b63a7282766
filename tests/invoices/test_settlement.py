"""Voiding, crediting, paying: what each changes, what it refuses, and what it costs.

Lost replies: `tests.site_operations`. Several at once: `tests/interleavings/test_invoices.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from dynamo._internal.client.sending import send
from dynamo._internal.items import ITEM_MAX_BYTES
from dynamo.exceptions import DamagedItem
from invoices.document.invoice import Invoice
from invoices.exceptions import (
    AlreadyCredited,
    AlreadyPaid,
    AlreadyVoided,
    DateTooEarly,
    InvoiceError,
    IsCreditNote,
    NotPaid,
    UnknownInvoice,
)
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
from tests.requests import Requests

TODAY = today()
YEAR = TODAY.year
FIRST, SECOND = f"{YEAR}-000001", f"{YEAR}-000002"
LATER = TODAY + timedelta(days=1)


@pytest.fixture
def invoice(account: str) -> Invoice:
    """An invoice with the label `FIRST`, which is due today."""
    return issued(account, day=TODAY, due_date=TODAY)


def stored() -> list[Any]:
    """Every invoice with its state."""
    tables = InvoiceItem.table(), InvoiceState.table()
    return [send("Scan", {"TableName": table})["Items"] for table in tables]


# What cannot be done ------------------------------------------------------------------------------


@pytest.fixture
def settled(account: str) -> dict[str, str]:
    """The labels of an invoice of each kind."""
    names = ("open", "voided", "credited", "paid")
    labels = {name: issued(account, day=TODAY).label for name in names}
    void(account, labels["voided"], "Wrong")
    labels["note"] = credit(account, labels["credited"], "Returned").label
    mark_paid(account, labels["paid"], TODAY)
    return labels


#: By the operation: its value, and the error for an invoice of each kind.
REFUSALS: dict[Callable[[str, str, Any], object], tuple[Any, dict[str, type[InvoiceError]]]] = {
    void: ("W", {"voided": AlreadyVoided, "credited": AlreadyCredited, "note": IsCreditNote}),
    credit: ("R", {"voided": AlreadyVoided, "note": IsCreditNote}),
    mark_paid: (
        LATER,
        {
            "voided": AlreadyVoided,
            "credited": AlreadyCredited,
            "note": IsCreditNote,
            "paid": AlreadyPaid,
        },
    ),
    mark_unpaid: (LATER, {"paid": NotPaid}),
}


def test_what_cannot_be_done_raises_its_error_and_changes_nothing(
    account: str, settled: dict[str, str]
) -> None:
    before = stored()
    told: dict[tuple[Any, str], Any] = {}
    for act, (value, errors) in REFUSALS.items():
        for kind, error in errors.items():
            with pytest.raises(error) as refused:
                act(account, settled[kind], value)
            told[act, kind] = refused.value
        if act is not mark_unpaid:
            unknown = [f"{YEAR}-000099", "2025-000001", "2026-1", "nonsense", ""]
            for who, label in [(new_account(), settled["open"]), *((account, n) for n in unknown)]:
                with pytest.raises(UnknownInvoice):
                    act(who, label, value)

    assert stored() == before
    assert told[mark_paid, "voided"].reason == "Wrong"
    assert told[mark_paid, "paid"].paid_on == TODAY
    assert told[mark_paid, "note"].number == settled["note"]
    # The page of an invoice reads the credit note; a payment is not told.
    assert told[void, "credited"].number == settled["credited"]
    assert told[void, "credited"].credit_note == settled["note"]


def test_a_reason_that_is_not_allowed_is_rejected_before_any_request(
    requests_sent: Requests,
) -> None:
    for act in (void, credit):
        for reason in ("", " ", " \u2060 ", "x" * 501, "𠮷" * 501, "a\u202eb"):
            with pytest.raises(ValidationError):
                act("an account", FIRST, reason)

    assert requests_sent.operations == []


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


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_voided_invoice_keeps_number_and_contents_and_shows_the_reason(
    account: str, invoice: Invoice, requests_sent: Requests
) -> None:
    requests_sent.clear()

    void(account, FIRST, " typo ")

    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], 4)
    voided = find_invoice(account, FIRST)
    assert (voided.status, voided.void_reason) == ("voided", "typo")
    assert voided.voided_at is not None
    assert (voided.lines, voided.totals) == (invoice.lines, invoice.totals)
    assert_whole(account, 1, YEAR)


@pytest.mark.fault_of("moto", "takes at most 405,000 bytes an item")
def test_the_largest_invoice_can_be_voided(account: str) -> None:
    size_bytes = ITEM_MAX_BYTES - InvoiceItem.reserved_bytes - 100
    invoice = issued(account, day=TODAY, note="x" * (size_bytes - 400))

    void(account, invoice.label, "𠮷" * 500)

    assert find_invoice(account, invoice.label).is_voided
    remove_invoice(invoice.series, 1)


# Crediting ----------------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_credit_note_cancels_an_invoice_under_the_next_number(
    account: str, requests_sent: Requests
) -> None:
    asks = {"due_date": TODAY + timedelta(days=14), "payment_terms": "Two weeks"}
    contents: dict[str, Any] = {"day": TODAY, "buyer_reference": "PO 7", "note": "Pay soon."} | asks
    invoice = issued(account, language="ja", **contents)
    requests_sent.clear()

    note = credit(account, FIRST, " Returned ")

    assert requests_sent.operations == ["TransactGetItems", "TransactWriteItems"]
    assert requests_sent.units == 6 + 10
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


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_payment_leaves_the_invoice_unchanged_and_can_be_undone_and_noted_again(
    account: str, invoice: Invoice, requests_sent: Requests
) -> None:
    before = stored_invoices(account, YEAR)
    requests_sent.clear()

    mark_paid(account, FIRST, TODAY)

    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], 4)
    record = find_record(account, FIRST, today=LATER)
    assert (record.state.paid_on, record.standing) == (TODAY, "paid")
    assert stored_invoices(account, YEAR) == before
    requests_sent.clear()

    mark_unpaid(account, FIRST, TODAY)

    assert (requests_sent.operations, requests_sent.units) == (["UpdateItem"], 1)
    standings = [find_record(account, FIRST, today=day).standing for day in (TODAY, LATER)]
    assert standings == ["open", "overdue"]
    mark_paid(account, FIRST, LATER)
    assert find_record(account, FIRST).state.paid_on == LATER


def test_a_damaged_state_is_an_error(account: str, invoice: Invoice) -> None:
    put_state(account, FIRST, paidOn={"S": "soon"})

    with pytest.raises(DamagedItem, match=InvoiceState.table()):
        find_record(account, FIRST)
