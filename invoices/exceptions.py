"""Errors of invoices.

InvoiceError (a SequenceError)
├── UnknownInvoice   the account has no such invoice
├── RequestIdReused  the request id issued an invoice with other contents
├── DateTooEarly     the issue date is before the last one of its series
├── AlreadyVoided    the invoice was voided before
├── AlreadyCredited  a credit note cancels the invoice
├── IsCreditNote     only an invoice can be voided, credited or paid
├── AlreadyPaid      the invoice is marked as paid on another day
├── NotPaid          the invoice is not marked as paid on this day
├── SendingReused    the request id sent the invoice to another address
├── TooManySendings  the invoice was sent too often within two days
├── UnknownCustomer  the account has no such customer
├── StaleCustomer    the customer was changed or deleted since it was read
└── ExportError      base of errors of exports that are stored in S3
    ├── ExportUnavailable  S3 or Lambda refused, or did not answer
    └── ExportTooSlow      the function's time is not enough to make the file
"""

from __future__ import annotations

from datetime import date

from sequences import SequenceError


class InvoiceError(SequenceError):
    """Base of all errors of invoices."""


class UnknownInvoice(InvoiceError):
    """This account does not have an invoice with this number (`2026-000042`)."""

    def __init__(self, number: str) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"There is no invoice {self.number}."


class RequestIdReused(InvoiceError):
    """The request id issued an invoice before, with other contents."""

    def __init__(self, request_id: str, number: str) -> None:
        super().__init__(request_id, number)
        self.request_id = request_id
        self.number = number

    def __str__(self) -> str:
        return (
            f"This request id issued invoice {self.number} before, with other contents. "
            "Use a new request id."
        )


class DateTooEarly(InvoiceError):
    """The issue date is before `last`, the date of the last invoice in the series."""

    def __init__(self, issued_on: date, last: date) -> None:
        super().__init__(issued_on, last)
        self.issued_on = issued_on
        self.last = last

    def __str__(self) -> str:
        return f"The last invoice is dated {self.last}. {self.issued_on} is before that day."


class AlreadyVoided(InvoiceError):
    """The invoice was voided before; `reason` is the one given then."""

    def __init__(self, number: str, reason: str) -> None:
        super().__init__(number, reason)
        self.number = number
        self.reason = reason

    def __str__(self) -> str:
        return f"Invoice {self.number} was already voided: {self.reason}"


class AlreadyCredited(InvoiceError):
    """The invoice is canceled by `credit_note` (`2026-000043`), empty if that is not known."""

    def __init__(self, number: str, credit_note: str = "") -> None:
        super().__init__(number, credit_note)
        self.number = number
        self.credit_note = credit_note

    def __str__(self) -> str:
        by = f" by credit note {self.credit_note}" if self.credit_note else ""
        return f"Invoice {self.number} was already credited{by}."


class IsCreditNote(InvoiceError):
    """The document is a credit note. Only an invoice can be voided, credited or paid."""

    def __init__(self, number: str) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"{self.number} is a credit note. It cannot be voided, credited or marked as paid."


class AlreadyPaid(InvoiceError):
    """The invoice is marked as paid on the day `paid_on`, which is another one."""

    def __init__(self, number: str, paid_on: date) -> None:
        super().__init__(number, paid_on)
        self.number = number
        self.paid_on = paid_on

    def __str__(self) -> str:
        return f"Invoice {self.number} is already marked as paid on {self.paid_on}."


class NotPaid(InvoiceError):
    """The invoice is not marked as paid on the day `paid_on`: on another day, or not at all."""

    def __init__(self, number: str, paid_on: date) -> None:
        super().__init__(number, paid_on)
        self.number = number
        self.paid_on = paid_on

    def __str__(self) -> str:
        return f"Invoice {self.number} is not marked as paid on {self.paid_on}."


class SendingReused(InvoiceError):
    """The request id was used before, to send the invoice to `to`."""

    def __init__(self, request_id: str, to: str) -> None:
        super().__init__(request_id, to)
        self.request_id = request_id
        self.to = to

    def __str__(self) -> str:
        return (
            f"This request id was used before, to send the invoice to {self.to}. "
            "Use a new request id."
        )


class TooManySendings(InvoiceError):
    """The invoice was sent so often within two days that no further sending can be recorded."""

    def __init__(self, number: str) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"Invoice {self.number} was sent too often. Try again in two days."


class UnknownCustomer(InvoiceError):
    """This account does not have a customer with this id."""

    def __init__(self, id_: str) -> None:
        super().__init__(id_)
        self.id = id_

    def __str__(self) -> str:
        return f"There is no customer {self.id}."


class StaleCustomer(InvoiceError):
    """The customer with this number was changed or deleted since it was read."""

    def __init__(self, number: str) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"Customer {self.number} was changed or deleted meanwhile."


class ExportError(InvoiceError):
    """Base of errors of exports that are stored in S3."""


class ExportUnavailable(ExportError):
    """S3 or Lambda refused, or did not answer."""

    def __str__(self) -> str:
        return "The export cannot be reached. Try again later."


class ExportTooSlow(ExportError):
    """The function's time is not enough to make the file."""

    def __str__(self) -> str:
        return "The function's time is not enough to make the file."
