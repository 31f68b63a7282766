"""What can go wrong with invoices.

InvoiceError (a SequenceError)
├── UnknownInvoice    the account has no such invoice
├── RequestIdReused   the request id issued an invoice with other contents
├── DateTooEarly      the issue date is before the last one of its series
├── InvoiceTooLarge   it does not fit into an item of DynamoDB
├── AlreadyVoided     the invoice is voided already
└── DamagedSeries     counter and invoices of a series contradict each other
"""

from __future__ import annotations

from datetime import date

from sequences.exceptions import SequenceError


class InvoiceError(SequenceError):
    """Base of every error of an invoice."""


class UnknownInvoice(InvoiceError):
    """This account has no invoice of this number (`2026-000042`)."""

    def __init__(self, number: str) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"There is no invoice {self.number}."


class RequestIdReused(InvoiceError):
    """The request id issued an invoice already, and with other contents."""

    def __init__(self, request_id: str, number: str) -> None:
        super().__init__(request_id, number)
        self.request_id = request_id
        self.number = number

    def __str__(self) -> str:
        return (
            f"This request has issued invoice {self.number} already, with other contents; "
            "use a new request id."
        )


class DateTooEarly(InvoiceError):
    """The issue date is before `last`, the date of the series' last invoice."""

    def __init__(self, issued_on: date, last: date) -> None:
        super().__init__(issued_on, last)
        self.issued_on = issued_on
        self.last = last

    def __str__(self) -> str:
        return f"The series has an invoice of {self.last}: {self.issued_on} is before it."


class InvoiceTooLarge(InvoiceError):
    """The invoice has `size_bytes` and DynamoDB stores at most `limit_bytes`."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes)
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return f"The invoice is too long: {self.size_bytes:,} of {self.limit_bytes:,} bytes."


class AlreadyVoided(InvoiceError):
    """The invoice was voided before, whether for the same reason or not; `reason` is that one."""

    def __init__(self, number: str, reason: str) -> None:
        super().__init__(number, reason)
        self.number = number
        self.reason = reason

    def __str__(self) -> str:
        return f"Invoice {self.number} is voided already: {self.reason}"


class DamagedSeries(InvoiceError):
    """Counter and invoices of `series` contradict each other; run `checkinvoices`."""

    def __init__(self, series: str) -> None:
        super().__init__(series)
        self.series = series

    def __str__(self) -> str:
        return f"The series {self.series} is damaged: run checkinvoices. Nothing was issued."
