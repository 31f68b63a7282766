"""Errors of invoices.

InvoiceError (a SequenceError)
├── UnknownInvoice       the account has no such invoice
├── InvoiceRequestReused the request id issued an invoice with other contents
├── DateTooEarly         the issue date is before the last one of its series
├── DateTooLate          the issue date is after tomorrow
├── AlreadyVoided        the invoice was voided before
├── AlreadyCredited      a credit note cancels the invoice
├── IsCreditNote         only an invoice can be voided, credited or paid
├── AlreadyPaid          the invoice is marked as paid, for `mark_paid` on another day
├── AlreadySent          the invoice is not voided, because a mail may have brought it
├── NotPaid              the invoice is not marked as paid on this day
├── SendingReused        the request id sent the invoice to another address
├── TooManySendings      the invoice was sent too often within two days
└── AddressBookFull      the account has the maximum number of customers
"""

from datetime import date
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sequences import SequenceError


class InvoiceError(SequenceError):
    """Base of all errors of invoices. Pages show those whose text is translated."""

    text: ClassVar[Any] = ""


class UnknownInvoice(InvoiceError):
    """This account does not have an invoice with this number (`2026-000042`)."""

    number: str

    text = "There is no invoice {number}."


class InvoiceRequestReused(InvoiceError):
    """The request id issued an invoice before, with other contents."""

    request_id: str
    number: str

    text = (
        "This request id issued invoice {number} before, with other contents. Use a new request id."
    )


class DateTooEarly(InvoiceError):
    """The issue date is before `last`, the date of the last invoice in the series."""

    issued_on: date
    last: date

    text = _("The last invoice is dated {last}. {issued_on} is before that day.")


class DateTooLate(InvoiceError):
    """The issue date is after tomorrow, and the caller did not confirm it."""

    issued_on: date

    text = (
        "{issued_on} is after tomorrow. With it, no other invoice of its year could be issued "
        "before that day. If it is right, use --force-date (force_date=True)."
    )


class AlreadyVoided(InvoiceError):
    """The invoice was voided before, for `reason`."""

    number: str
    reason: str

    text = _("Invoice {number} was already voided: {reason}")


class AlreadyCredited(InvoiceError):
    """The invoice is canceled by `credit_note` (`2026-000043`), empty if that is not known."""

    number: str
    credit_note: str = ""

    def __str__(self) -> str:
        by = f" by credit note {self.credit_note}" if self.credit_note else ""
        return f"Invoice {self.number} was already credited{by}."


class IsCreditNote(InvoiceError):
    """The document is a credit note. Only an invoice can be voided, credited or paid."""

    number: str

    text = _("{number} is a credit note. It cannot be voided, credited or marked as paid.")


class AlreadyPaid(InvoiceError):
    """The invoice is marked as paid on `paid_on`, so it is not voided or marked for another day."""

    number: str
    paid_on: date

    text = _("Invoice {number} is already marked as paid on {paid_on}.")


class AlreadySent(InvoiceError):
    """The customer may have received the invoice by mail, and `even_if_sent` was not given."""

    number: str

    text = _("Invoice {number} was sent by email, or may have been. Credit it instead.")


class NotPaid(InvoiceError):
    """The invoice is not marked as paid on the day `paid_on`: on another day, or not at all."""

    number: str
    paid_on: date

    text = "Invoice {number} is not marked as paid on {paid_on}."


class SendingReused(InvoiceError):
    """The request id was used before, to send the invoice to `to`."""

    request_id: str
    to: str

    text = "This request id was used before, to send the invoice to {to}. Use a new request id."


class TooManySendings(InvoiceError):
    """The invoice was sent so often within two days that no further sending can be recorded."""

    number: str

    text = _("Invoice {number} was sent too often. You can send it again in two days.")


class AddressBookFull(InvoiceError):
    """The account has `limit` customers already."""

    limit: int

    text = _(
        "The address book has {limit} customers, and more are not allowed. Delete some that you do "
        "not need."
    )
