"""What can go wrong with numbers and invoices.

SequenceError
├── ReservedName          a counter's name that belongs to invoice series
├── NotACounter           what is stored under a counter's name is no whole number
├── CounterContended      the optimistic strategy met others until its deadline
└── InvoiceError
    ├── UnknownInvoice    no such invoice of this account
    ├── RequestIdReused   the request id issued an invoice of other contents
    ├── DateTooEarly      the issue date is before the last one of its series
    ├── InvoiceTooLarge   it does not fit into an item of DynamoDB
    ├── AlreadyVoided     an invoice is voided once, for one reason
    └── DamagedSeries     counter and invoices of a series contradict each other
"""

from __future__ import annotations

from datetime import date


class SequenceError(Exception):
    """Base of every error of counters and invoices."""


class ReservedName(SequenceError):
    """A counter cannot have this name: it counts the invoices of a series."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"The name {self.name!r} belongs to an invoice series, which counts by itself."


class NotACounter(SequenceError):
    """What is stored under this name is no whole number, so it cannot be counted up."""

    def __init__(self, name: str, stored: object = None) -> None:
        super().__init__(name, stored)
        self.name = name
        self.stored = stored

    def __str__(self) -> str:
        return f"The counter {self.name!r} holds no whole number: {self.stored!r}."


class CounterContended(SequenceError):
    """Others changed the counter at every try until the deadline; no number was drawn."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"The counter {self.name!r} is too busy for the optimistic strategy."


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
