"""What happened to an invoice after it was issued: it was paid, voided, or credited.

The invoice itself only changes when it is voided. Everything else is in its `InvoiceState`. That
an invoice is credited is decided by the guard item of its credit note's request id; its state
repeats it for lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo import Transaction, joined
from dynamo.extending import Item, Refusal, Write, read_together
from invoices.document.fields import Field
from invoices.document.invoice import Invoice, credit_request_id, label_of, parse_label, series_of
from invoices.document.kinds import Day
from invoices.exceptions import (
    AlreadyCredited,
    AlreadyPaid,
    AlreadyVoided,
    IsCreditNote,
    NotPaid,
    UnknownInvoice,
)
from invoices.models import InvoiceItem, InvoiceState
from invoices.store.items import from_item

#: What became of a document; see `Record.standing`.
STANDINGS = ("voided", "credit_note", "credited", "paid", "overdue", "open")


@dataclass(frozen=True)
class Record:
    """An invoice and what happened to it, as of the day `today`.

    `credit_note` is the label of the credit note that cancels it (`2026-000043`), if it is known:
    lists do not read it. Without `today`, no invoice is overdue.
    """

    invoice: Invoice
    state: InvoiceState
    today: date | None = None
    credit_note: str = ""

    @property
    def is_credited(self) -> bool:
        return bool(self.credit_note or self.state.credited_by)

    @property
    def is_paid(self) -> bool:
        return bool(self.state.paid_on)

    @property
    def can_be_paid(self) -> bool:
        return self.standing in {"open", "overdue"}

    @property
    def can_be_canceled(self) -> bool:
        """Whether it can be voided or credited."""
        return self.can_be_paid or self.standing == "paid"

    @property
    def standing(self) -> str:
        """The one of `STANDINGS` that it has."""
        invoice = self.invoice
        return standing_of(
            is_voided=invoice.is_voided,
            is_credit_note=invoice.is_credit_note,
            is_credited=self.is_credited,
            is_paid=self.is_paid,
            due_date=invoice.due_date,
            today=self.today,
        )


def standing_of(
    *,
    is_voided: bool,
    is_credit_note: bool,
    is_credited: bool,
    is_paid: bool,
    due_date: date | None,
    today: date | None,
) -> str:
    """The first of `STANDINGS` that holds. Without `today`, no invoice is overdue."""
    if is_voided:
        return "voided"
    if is_credit_note:
        return "credit_note"
    if is_credited:
        return "credited"
    if is_paid:
        return "paid"
    return "overdue" if due_date and today and due_date < today else "open"


def find_record(account: str, label: str, today: date | None = None) -> Record:
    """The account's invoice with this label (`2026-000042`), and what happened to it.

    Costs 1 request, 2 read units per 4 KB of the invoice, and 4 more.

    Raises:
        UnknownInvoice: there is no such invoice, or `label` is not a label.
        DamagedItem: a stored item is damaged.
    """
    key, state_key = invoice_at(account, label), state_at(account, label)
    item, state, guard = read_together([key, state_key, _credit_guard(key.series, label)])
    if not item:
        raise UnknownInvoice(label)
    return Record(
        from_item(item),
        InvoiceState.from_raw_data(state) if state else state_key,
        today,
        _label_of_guard(guard) if guard else "",
    )


def state_at(account: str, label: str) -> InvoiceState:
    """The key of the state of an invoice. Raises UnknownInvoice if `label` is not a label."""
    year, number = parse_label(label)
    return InvoiceState(series_of(account, year), number)


# Payments ----------------------------------------------------------------------------------------

#: When an invoice was paid.
PAID_ON = Field("paid_on", Day(), label=_("Paid on"))


def check_paid_on(day: date, today: date) -> date:
    """Return `day`. Raises ValidationError if people cannot know yet of a payment on it."""
    if day > today:
        raise ValidationError(_("Enter a day that is not in the future."), "future")
    return day


def mark_paid(account: str, label: str, day: date, *, write: Transaction | None = None) -> None:
    """Note that the invoice was paid on `day`. Repeated with the same day, it changes nothing.

    Costs 1 request and 4 write units for an invoice of up to 1 KB.

    Raises (ValidationError at once, the others when the transaction is refused):
        UnknownInvoice, IsCreditNote, AlreadyVoided, AlreadyCredited: it cannot be paid.
        AlreadyPaid: it is marked as paid on another day.
        ValidationError: `day` is not a date that an invoice can have.
    """
    PAID_ON.check(day)
    state = state_at(account, label)

    def refused(refusal: Refusal) -> Exception | None:
        stored = _state_of(refusal)
        if stored.credited_by:
            return AlreadyCredited(label)
        # Also if this very write was carried out before.
        if stored.paid_on == day:
            return None
        return AlreadyPaid(label, stored.paid_on)

    with joined(write) as write:
        write.add(check_issued(account, label))
        write.add(
            Write.update(
                state,
                [InvoiceState.paid_on.set(day)],
                InvoiceState.paid_on.does_not_exist() & InvoiceState.credited_by.does_not_exist(),
                otherwise=refused,
            )
        )


def mark_unpaid(account: str, label: str, day: date, *, write: Transaction | None = None) -> None:
    """Undo `mark_paid` with the same `day`. Without a payment, it changes nothing.

    Costs 1 request and 1 write unit.

    Raises:
        NotPaid: it is marked as paid on another day.
        UnknownInvoice: `label` is not a label.
    """

    def refused(refusal: Refusal) -> Exception | None:
        return NotPaid(label, day) if bool(_state_of(refusal).paid_on) else None

    with joined(write) as write:
        write.update(
            state_at(account, label),
            [InvoiceState.paid_on.remove()],
            InvoiceState.paid_on == day,
            otherwise=refused,
        )


def _state_of(refusal: Refusal) -> InvoiceState:
    return InvoiceState.from_raw_data(refusal.stored or {})


# Conditions of other operations ------------------------------------------------------------------


def check_issued(account: str, label: str) -> Write:
    """The check that this is an invoice that is not voided, for a transaction.

    Its refusal means UnknownInvoice, IsCreditNote, AlreadyVoided, or DamagedItem.
    """
    key = invoice_at(account, label)
    check = {
        **table_and_key(key),
        "ConditionExpression": ISSUED,
        "ExpressionAttributeNames": {"#status": "status"},
        "ExpressionAttributeValues": {":issued": {"S": "issued"}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    return Write(key, {"ConditionCheck": check}, lambda refusal: why_not_issued(label, refusal))


#: The condition of `check_issued`, with its names and values.
ISSUED = "#status = :issued AND attribute_not_exists(credits)"


def why_not_issued(label: str, refusal: Refusal) -> Exception:
    """What it means that an item does not meet `ISSUED`."""
    invoice = from_item(refusal.stored) if refusal.stored else None
    if invoice is None:
        return UnknownInvoice(label)
    return (
        IsCreditNote(label) if invoice.is_credit_note else AlreadyVoided(label, invoice.void_reason)
    )


def check_not_credited(account: str, label: str) -> Write:
    """The check that no credit note cancels the invoice; its refusal means AlreadyCredited."""
    guard = _credit_guard(invoice_at(account, label).series, label)
    check = {
        **table_and_key(guard),
        "ConditionExpression": "attribute_not_exists(series)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }

    def otherwise(refusal: Refusal) -> Exception:
        return AlreadyCredited(label, _label_of_guard(refusal.stored or {}))

    return Write(guard, {"ConditionCheck": check}, otherwise)


def mark_credited(account: str, label: str) -> Write:
    """The write that notes in the state of an invoice that it is credited."""
    return Write.update(
        state_at(account, label),
        [InvoiceState.credited_by.set(credit_request_id(label))],
        InvoiceState.credited_by.does_not_exist(),
        otherwise=AlreadyCredited(label),
    )


# Keys --------------------------------------------------------------------------------------------


def invoice_at(account: str, label: str) -> InvoiceItem:
    """The key of an invoice. Raises UnknownInvoice if `label` is not a label."""
    year, number = parse_label(label)
    return InvoiceItem.at(series_of(account, year), number)


def _credit_guard(series: str, label: str) -> InvoiceItem:
    """The key of the guard item of the credit note for an invoice."""
    return InvoiceItem.at(InvoiceItem.guard_key(series, credit_request_id(label)), 0)


def _label_of_guard(guard: Item) -> str:
    """The label of the document that a guard item names."""
    place = InvoiceItem.place_of(guard)
    if place is None:
        return ""
    return label_of(int(place.series.rpartition("#")[2]), place.number)


def table_and_key(item: InvoiceItem) -> dict[str, Any]:
    """The parameters of a request that name `item`."""
    key: Item = {"series": {"S": item.series}, "number": {"N": str(item.number)}}
    return {"TableName": InvoiceItem.table(), "Key": key}
