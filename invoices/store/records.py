"""The stored form of an invoice, and its events after it was issued.

The invoice itself only changes when it is voided. Everything else is in its `InvoiceState`. The
guard item of its credit note's request id decides whether an invoice is credited. Its state repeats
this for lists.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal, get_args

from django.utils.translation import gettext_lazy as _
from pynamodb.expressions.condition import Condition

from dynamo import DamagedItem
from dynamo.client.sending import read_item
from dynamo.transactions import read_together
from dynamo.wire.types import Item
from invoices.document.amounts import Line, Totals, VatShare
from invoices.document.fields import from_wire, to_wire
from invoices.document.invoice import (
    Customer,
    Invoice,
    Seller,
    credit_request_id,
    label_of,
    parse_label,
    series_of,
)
from invoices.exceptions import UnknownInvoice
from invoices.models import InvoiceItem, InvoiceState


def to_item(invoice: Invoice) -> Item:
    """The stored item. Fields at their defaults are left out, except the status."""
    return {
        "series": {"S": invoice.series},
        "number": {"N": str(invoice.number)},
        "status": {"S": invoice.status},
        **to_wire(invoice),
        **to_wire(invoice.seller, "seller"),
        **to_wire(invoice.customer, "customer"),
        "lines": {"L": [{"M": to_wire(line)} for line in invoice.lines]},
        "net": {"N": str(invoice.totals.net)},
        "gross": {"N": str(invoice.totals.gross)},
        "vat": {"L": [{"M": to_wire(share)} for share in invoice.totals.shares]},
    }


def from_item(item: Item) -> Invoice:
    """The invoice of a stored item.

    Raises:
        DamagedItem: something is missing, has another type, or belongs to another series.
    """
    series = item["series"]["S"]
    number = item["number"]["N"]
    account, _hash, year = series.rpartition("#")
    try:
        shares = tuple(VatShare(**from_wire(VatShare, share["M"])) for share in item["vat"]["L"])
        invoice = Invoice(
            **from_wire(Invoice, item),
            account=account,
            number=int(number),
            seller=Seller(**from_wire(Seller, item, "seller")),
            customer=Customer(**from_wire(Customer, item, "customer")),
            lines=tuple(Line(**from_wire(Line, line["M"])) for line in item["lines"]["L"]),
            totals=Totals(int(item["net"]["N"]), shares),
        )
        if year != str(invoice.issued_at.year):
            raise ValueError(f"issued at {invoice.issued_at}")
    except (KeyError, ValueError) as error:
        problem = f"not an invoice ({error!r})"
        raise DamagedItem(InvoiceItem.table(), f"{series}#{number}", "", problem) from error
    return invoice


# Later events -------------------------------------------------------------------------------------

#: The states of a document (see `Record.standing`), and their names on pages.
STANDINGS = {
    "voided": _("Voided"),
    "credit_note": _("Credit note"),
    "credited": _("Credited"),
    "paid": _("Paid"),
    "overdue": _("Overdue"),
    "open": _("Open"),
}


@dataclass(frozen=True)
class Record:
    """An invoice and its later events, as of the day `today`.

    `credit_note` is the label of the credit note that cancels it (`2026-000043`), if it is known:
    lists do not read it. Without `today`, no invoice is overdue.
    """

    invoice: Invoice
    state: InvoiceState
    today: date | None = None
    credit_note: str = ""

    @property
    def is_paid(self) -> bool:
        return bool(self.state.paid_on)

    @property
    def can_be_paid(self) -> bool:
        return self.standing in {"open", "overdue"}

    @property
    def can_be_credited(self) -> bool:
        return self.can_be_paid or self.standing == "paid"

    @property
    def can_be_voided(self) -> bool:
        """An invoice that was paid, or may have been received by email, is credited instead."""
        return self.can_be_paid and not may_have_arrived(self.state)

    @property
    def standing(self) -> str:
        """The key of its current state in `STANDINGS`."""
        return standing_of(
            self.invoice.due_date,
            self.today,
            voided=self.invoice.is_voided,
            credit_note=self.invoice.is_credit_note,
            credited=bool(self.credit_note or self.state.credited_by),
            paid=self.is_paid,
        )


def standing_of(due_date: date | None, today: date | None, **has_happened: bool) -> str:
    """The first of `STANDINGS` that holds. Without `today`, no invoice is overdue."""
    if happened := next((standing for standing in STANDINGS if has_happened.get(standing)), None):
        return happened
    return "overdue" if due_date and today and due_date < today else "open"


def find_record(account: str, label: str, today: date | None = None) -> Record:
    """The account's invoice with this label (`2026-000042`), and its later events.

    Costs 1 request, 2 read units per 4 KB of the invoice, and 4 more.

    Raises:
        UnknownInvoice: there is no such invoice, or `label` is not a label.
        DamagedItem: a stored item is damaged.
    """
    key = invoice_at(account, label)
    state_key = state_at(account, label)
    item, state, guard = read_together([key, state_key, credit_guard(key.series, label)])
    if not item:
        raise UnknownInvoice(label)
    return Record(
        from_item(item),
        InvoiceState.from_raw_data(state) if state else state_key,
        today,
        label_of_guard(guard) if guard else "",
    )


def state_at(account: str, label: str) -> InvoiceState:
    """The key of the state of an invoice. Raises UnknownInvoice if `label` is not a label."""
    year, number = parse_label(label)
    return InvoiceState(series_of(account, year), number)


def find_invoice(account: str, label: str) -> Invoice:
    """The account's invoice with this label (`2026-000042`).

    Costs 1 request and 1 read unit per 4 KB.

    Raises:
        UnknownInvoice: there is no such invoice, or `label` is not a label.
        DamagedItem: its stored item is damaged.
    """
    at = invoice_at(account, label)
    key = {"series": {"S": at.series}, "number": {"N": str(at.number)}}
    item = read_item({"TableName": InvoiceItem.table(), "Key": key})
    if not item:
        raise UnknownInvoice(label)
    return from_item(item)


def invoice_at(account: str, label: str) -> InvoiceItem:
    """The key of an invoice. Raises UnknownInvoice if `label` is not a label."""
    year, number = parse_label(label)
    return InvoiceItem(series_of(account, year), number)


def credit_guard(series: str, label: str) -> InvoiceItem:
    """The key of the guard item of the credit note for an invoice."""
    return InvoiceItem(InvoiceItem.guard_key(series, credit_request_id(label)), 0)


def label_of_guard(guard: Item) -> str:
    """The label of the document that a guard item names."""
    place = InvoiceItem.place_of(guard)
    if place is None:
        return ""
    return label_of(int(place.series.rpartition("#")[2]), place.number)


# Its mails ----------------------------------------------------------------------------------------

#: The outcome of a mail: its task waits; the mail server accepted it, refused it, or was not
#: reached; or unknown. A mail that was "refused" or "failed" cannot arrive.
Outcome = Literal["waiting", "sent", "refused", "failed", "unknown"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Sending:
    """An attempt to send an invoice `to` an address; `at` is when it began."""

    request_id: str
    to: str
    at: datetime
    outcome: Outcome
    #: The id of its task; empty if no worker runs it.
    task: str = ""


def sendings_of(state: InvoiceState) -> list[Sending]:
    """The sendings that an invoice keeps, the latest first.

    The task of a waiting one may have failed for good: see `output.sending.current_sendings`.

    Raises:
        DamagedItem: one of them cannot be read.
    """
    try:
        sendings = [
            Sending(
                request_id,
                values["to"],
                datetime.fromisoformat(values["at"]).astimezone(UTC),
                OUTCOMES[OUTCOMES.index(values["outcome"])],
                values.get("task", ""),
            )
            for request_id, values in stored_sendings(state).items()
        ]
        return sorted(sendings, key=lambda sending: sending.at, reverse=True)
    except (KeyError, TypeError, ValueError) as error:
        key = f"{state.series}#{state.number}"
        problem = f"not a map of sendings ({error!r})"
        raise DamagedItem(InvoiceState.table(), key, "sendings", problem) from error


def may_have_arrived(state: InvoiceState) -> bool:
    """Whether the customer may have received a mail with the invoice."""
    return any(item.outcome in {"waiting", "sent", "unknown"} for item in sendings_of(state))


def stored_sendings(state: InvoiceState) -> dict[str, Any]:
    """The sendings as they are stored, by request id."""
    return state.sendings.as_dict() if state.sendings is not None else {}


def same_sendings(state: InvoiceState) -> Condition:
    """The condition that no sending was added or changed since `state` was read."""
    path = InvoiceState.sendings
    if state.sendings is None:
        return path.does_not_exist()
    return path == stored_sendings(state)
