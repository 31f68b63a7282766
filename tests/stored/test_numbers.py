"""Every operation works on counters and invoices of released versions."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from invoices.document.amounts import Line
from invoices.document.invoice import Customer, Draft
from invoices.exceptions import AlreadyCredited, AlreadyVoided, InvoiceRequestReused
from invoices.store.customers import (
    add_customer,
    all_customers,
    delete_address_book,
    list_customers,
)
from invoices.store.issuing import issue_invoice
from invoices.store.lists import all_invoices, list_invoices
from invoices.store.records import find_invoice, find_record
from invoices.store.settlement import credit, mark_paid, mark_unpaid, void
from sequences import last_value, next_value, next_values
from tests.commands import run
from tests.invoice_factories import SELLER, assert_whole, draft
from tests.stored.releases import Stored, each_release

pytestmark = each_release

FIRST = draft(
    Customer("Bob", "Side Street 2"),
    lines=(
        Line("Work", Decimal("1.5"), Decimal("99.99"), Decimal(19)),
        Line("Book 本", Decimal(2), Decimal(10), Decimal(7)),
    ),
    note="Thanks",
)
CUSTOMER = Customer("Müller & Co", "Side Street 2", vat_id="DE136695976", country="DE", number="1")
PAID_ON = date(2026, 3, 20)
LABELS = [f"2026-00000{number}" for number in (1, 2, 3)]


@pytest.fixture
def account(stored: Stored) -> str:
    """The account that issued invoices."""
    return stored.pk("Ann.Müller")


def test_counters_continue_from_their_values(stored: Stored) -> None:
    assert (last_value("tickets"), last_value("seconds")) == (42, 10)

    assert next_value("tickets") == 43
    assert next_values(2, "tickets", strategy="optimistic") == range(44, 46)
    assert next_value("seconds", 10, increment=-10) == 0


def test_invoices_are_read_as_they_were_stored(stored: Stored, account: str) -> None:
    third, second, first = all_invoices(account, 2026)

    assert (first.label, first.lines, first.note) == ("2026-000001", FIRST.lines, "Thanks")
    assert (first.totals.net, first.totals.gross, first.currency) == (16999, 19989, "EUR")
    assert (second.is_voided, second.void_reason, second.language) == (True, "Wrong customer", "ja")
    assert (third.customer.name, third.is_voided) == ("Carl", False)
    [found] = list_invoices(account, 2026, customer="株式").invoices
    assert (found.label, found.gross, found.is_voided) == (second.label, 55000, True)
    assert find_invoice(account, "2026-000002") == second


def test_a_repeated_request_returns_the_stored_invoice_and_the_next_has_the_next_number(
    stored: Stored, account: str
) -> None:
    def issue(asked: Draft, **request: str) -> str:
        return issue_invoice(asked, account=account, seller=SELLER, **request).label

    later = draft(day=date(2026, 3, 16))
    assert issue(FIRST, request_id="first form") == "2026-000001"
    with pytest.raises(InvoiceRequestReused):
        issue(later, request_id="first form")
    assert issue(later) == "2026-000004"
    assert_whole(account, 4)
    assert run("checkinvoices")[2] == 0


def test_an_invoice_is_voided_once(stored: Stored, account: str) -> None:
    for label in (LABELS[0], LABELS[2]):
        void(account, label, "Wrong")
        assert find_invoice(account, label).is_voided
    for label in LABELS:
        with pytest.raises(AlreadyVoided):
            void(account, label, "Once more")

    assert_whole(account, 3)


def test_an_invoice_is_credited_and_marked_as_paid(stored: Stored, account: str) -> None:
    first = find_invoice(account, "2026-000001")
    mark_paid(account, "2026-000001", date(2026, 3, 20))
    mark_unpaid(account, "2026-000001", date(2026, 3, 20))

    for label in ("2026-000001", "2026-000003"):
        note = credit(account, label, "Returned")
        assert (note.credits, note.seller) == (label, find_invoice(account, label).seller)
        assert find_record(account, label).credit_note == note.label
    with pytest.raises(AlreadyVoided):
        credit(account, "2026-000002", "Returned")

    note = find_invoice(account, find_record(account, "2026-000001").credit_note)
    assert (note.totals.net, note.totals.gross) == (-first.totals.net, -first.totals.gross)
    standings = [invoice.standing for invoice in list_invoices(account, 2026).invoices]
    assert standings[-3:] == ["credited", "voided", "credited"]


def test_a_paid_and_a_credited_invoice_and_the_credit_note_are_so_still(stored: Stored) -> None:
    account = stored.pk("hal")

    records = [find_record(account, label) for label in LABELS]
    assert [record.standing for record in records] == ["paid", "credited", "credit_note"]
    assert (records[0].state.paid_on, records[1].credit_note) == (PAID_ON, "2026-000003")
    with pytest.raises(AlreadyCredited):
        void(account, "2026-000002", "Wrong")
    mark_unpaid(account, "2026-000001", PAID_ON)
    void(account, "2026-000001", "Wrong")
    assert find_record(account, "2026-000001").standing == "voided"


def test_the_address_book_is_read_changed_and_deleted(stored: Stored, account: str) -> None:
    assert [*all_customers(account)] == [CUSTOMER]
    item = add_customer(account, CUSTOMER, request_id="form of a customer")
    item.change(name="Meier")

    assert [found.name for found in list_customers(account, "mei")] == ["Meier"]
    delete_address_book(account)
    assert [*all_customers(account)] == []


def test_the_commands_read_what_is_stored(stored: Stored, account: str, tmp_path: Path) -> None:
    for number in LABELS:
        out, err, code = run("showinvoice", "--user", account, number, "--json")
        assert (json.loads(out)["number"], err, code) == (number, "", 0)
        assert run("invoicepdf", "--user", account, number, "-o", f"{tmp_path}/{number}")[2] == 0
    out, err, code = run("checkinvoices", "--user", account, "--json")
    assert (json.loads(out)["issued"], json.loads(out)["voided"], code) == (2, 1, 0)
