"""Marking an invoice as paid, and undoing it."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from dynamo.exceptions import DamagedItem
from invoices.exceptions import (
    AlreadyCredited,
    AlreadyPaid,
    AlreadyVoided,
    IsCreditNote,
    NotPaid,
    UnknownInvoice,
)
from invoices.models import InvoiceState
from invoices.store.records import find_record
from invoices.store.settlement import credit, mark_paid, mark_unpaid, void
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import DAY, issued, new_account, put_state, stored_invoices
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

FIRST = f"{DAY.year}-000001"
PAID = DAY + timedelta(days=9)
LATER = PAID + timedelta(days=1)


@pytest.fixture
def account() -> str:
    """An account with one invoice, `FIRST`, which is due before `PAID`."""
    account = new_account()
    issued(account, due_date=DAY + timedelta(days=7))
    return account


def paid_on(account: str) -> date | None:
    return find_record(account, FIRST).state.paid_on


@pytest.mark.fault_of("moto", "reports other capacity")
def test_an_invoice_is_paid_on_a_day_and_itself_unchanged(
    account: str, requests_sent: Requests
) -> None:
    before = stored_invoices(account)
    requests_sent.clear()

    mark_paid(account, FIRST, PAID)

    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], 4)
    record = find_record(account, FIRST, today=LATER)
    assert (record.state.paid_on, record.standing) == (PAID, "paid")
    assert stored_invoices(account) == before


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_payment_can_be_undone_and_noted_again(account: str, requests_sent: Requests) -> None:
    mark_paid(account, FIRST, PAID)
    requests_sent.clear()

    mark_unpaid(account, FIRST, PAID)

    assert (requests_sent.operations, requests_sent.units) == (["UpdateItem"], 1)
    assert find_record(account, FIRST, today=LATER).standing == "overdue"
    mark_paid(account, FIRST, LATER)
    assert paid_on(account) == LATER


def test_repeating_either_changes_nothing(account: str) -> None:
    for act, result in ((mark_paid, PAID), (mark_unpaid, None)):
        for _ in range(2):
            act(account, FIRST, PAID)
            assert paid_on(account) == result


def test_another_day_does_not_replace_the_first_one(account: str) -> None:
    mark_paid(account, FIRST, PAID)

    with pytest.raises(AlreadyPaid) as refused:
        mark_paid(account, FIRST, LATER)
    with pytest.raises(NotPaid):
        mark_unpaid(account, FIRST, LATER)

    assert refused.value.paid_on == PAID
    assert paid_on(account) == PAID


def test_a_payment_is_not_undone_by_somebody_who_saw_another_one(
    account: str, proxy: FaultProxy
) -> None:
    mark_paid(account, FIRST, PAID)

    def corrected() -> None:
        mark_unpaid(account, FIRST, PAID)
        mark_paid(account, FIRST, LATER)

    proxy.plan("UpdateItem", Meanwhile(corrected))

    with pytest.raises(NotPaid):
        mark_unpaid(account, FIRST, PAID)

    assert paid_on(account) == LATER


def test_what_cannot_be_paid_is_not_marked_and_gets_no_state(account: str) -> None:
    voided, credited = issued(account).label, issued(account, due_date=None).label
    void(account, voided, "Wrong")
    note = credit(account, credited, "Returned").label

    for label, error in {
        voided: AlreadyVoided,
        credited: AlreadyCredited,
        note: IsCreditNote,
        f"{DAY.year}-000099": UnknownInvoice,
        "nonsense": UnknownInvoice,
    }.items():
        with pytest.raises(error):
            mark_paid(account, label, PAID)

    for label in (voided, credited, note):
        assert find_record(account, label).state.paid_on is None


def test_an_invoice_that_is_credited_after_its_payment_counts_as_credited(account: str) -> None:
    mark_paid(account, FIRST, PAID)

    credit(account, FIRST, "Returned")

    record = find_record(account, FIRST)
    assert (record.standing, record.state.paid_on) == ("credited", PAID)


def test_the_sendings_of_an_invoice_are_a_map_by_request_id(account: str) -> None:
    sending = {"to": "bob@example.org", "at": "2026-03-14T10:00:00+00:00", "outcome": "sent"}
    wire = {"M": {name: {"S": text} for name, text in sending.items()}}
    put_state(account, FIRST, sendings={"M": {"r": wire}})

    state = find_record(account, FIRST).state

    assert state.sendings.as_dict() == {"r": sending}


def test_a_damaged_state_is_an_error_that_names_its_table(account: str) -> None:
    put_state(account, FIRST, paidOn={"S": "soon"})

    with pytest.raises(DamagedItem, match=InvoiceState.table()):
        find_record(account, FIRST)
