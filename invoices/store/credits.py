"""Credit notes: the document that cancels an invoice which was already sent or booked.

A credit note is numbered in the series of the day it is issued on. It has the seller, the customer
and the lines of the invoice, with negated quantities. Its request id is derived from the invoice,
so there is at most one, whoever asks how often.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.utils.translation import gettext_lazy as _

from invoices.document.amounts import Line
from invoices.document.fields import Field
from invoices.document.invoice import Draft, Invoice, credit_request_id
from invoices.document.kinds import SingleLine
from invoices.exceptions import (
    AlreadyCredited,
    AlreadyVoided,
    DateTooEarly,
    InvoiceRequestReused,
    IsCreditNote,
)
from invoices.store.issuing import issue_checked, today
from invoices.store.records import find_invoice
from invoices.store.states import check_issued, find_record, mark_credited

#: Why an invoice is credited.
CREDIT_REASON = Field(
    "reason",
    SingleLine(500),
    label=_("Reason"),
    help_text=_("Your customer sees it on the credit note."),
)


def credit(account: str, label: str, reason: str, *, time_zone: str | None = None) -> Invoice:
    """The credit note for an invoice, dated today in `time_zone`; see `issuing.today`.

    It is issued in the language of the invoice. If the invoice is credited already, the first
    credit note is returned, with the reason that was given then.

    Costs 2 requests, 6 read and 10 write units for an invoice of up to 1 KB; the first call of a
    process on the series costs 1 read more, and so does an invoice that another process has
    issued since.

    Raises:
        ValidationError: the reason is empty, too long, or cannot be printed; nothing was sent.
        UnknownInvoice: the account has no such invoice.
        IsCreditNote: it is a credit note.
        AlreadyVoided: it was voided.
        AlreadyCredited: it is marked as credited, but its credit note does not exist.
        DateTooEarly: the invoice or the series already has a later date.
        InvoiceRequestReused: an invoice has the request id, which version 0.1 did not reserve.
        ItemTooLarge, DamagedSeries, DamagedItem, Unavailable: see `sequences.issue`.
    """
    reason = CREDIT_REASON.clean(reason)
    record = find_record(account, label)
    invoice = record.invoice
    if record.credit_note:
        return _credit_note(account, record.credit_note, invoice)
    if invoice.is_credit_note:
        raise IsCreditNote(label)
    if invoice.is_voided:
        raise AlreadyVoided(label, invoice.void_reason)
    if (day := today(time_zone)) < invoice.issued_at:
        raise DateTooEarly(day, invoice.issued_at)
    try:
        return issue_checked(
            _draft(invoice, reason),
            account,
            invoice.seller,
            credit_request_id(label),
            invoice.language,
            time_zone,
            also=[check_issued(account, label), mark_credited(account, label)],
        )
    except (AlreadyCredited, InvoiceRequestReused):
        # Another call was faster, perhaps with another reason.
        record = find_record(account, label)
        if not record.credit_note:
            raise
        return _credit_note(account, record.credit_note, invoice)


def _draft(invoice: Invoice, reason: str) -> Draft:
    """Without what asks for a payment: the due date, the terms, and the note."""
    return Draft(
        customer=invoice.customer,
        lines=negated(invoice.lines),
        currency=invoice.currency,
        prices_include_tax=invoice.prices_include_tax,
        supplied_from=invoice.supplied_from,
        supplied_to=invoice.supplied_to,
        buyer_reference=invoice.buyer_reference,
        exemption_reason=invoice.exemption_reason,
        credits=invoice.label,
        credit_reason=reason,
    )


def negated(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The lines with negated quantities. Rounding is symmetric, so all sums change their sign."""
    return tuple(replace(line, quantity=-line.quantity) for line in lines)


def _credit_note(account: str, label: str, invoice: Invoice) -> Invoice:
    note = find_invoice(account, label)
    if note.credits != invoice.label:
        raise InvoiceRequestReused(credit_request_id(invoice.label), label)
    return note
