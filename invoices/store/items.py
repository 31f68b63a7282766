"""How an invoice is stored."""

from __future__ import annotations

from dynamo import DamagedItem
from dynamo.extending import Item
from invoices.document.amounts import Line, Totals, VatShare
from invoices.document.fields import from_wire, to_wire
from invoices.document.invoice import Customer, Invoice, Seller
from invoices.models import InvoiceItem


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
    try:
        return _invoice_of(item)
    except (KeyError, ValueError) as error:
        key = f"{item['series']['S']}#{item['number']['N']}"
        raise DamagedItem(InvoiceItem.table(), key, f"not an invoice ({error!r})") from error


def _invoice_of(item: Item) -> Invoice:
    account, _, year = item["series"]["S"].rpartition("#")
    shares = tuple(VatShare(**from_wire(VatShare, share["M"])) for share in item["vat"]["L"])
    invoice = Invoice(
        **from_wire(Invoice, item),
        account=account,
        number=int(item["number"]["N"]),
        seller=Seller(**from_wire(Seller, item, "seller")),
        customer=Customer(**from_wire(Customer, item, "customer")),
        lines=tuple(Line(**from_wire(Line, line["M"])) for line in item["lines"]["L"]),
        totals=Totals(int(item["net"]["N"]), shares),
    )
    if year != str(invoice.issued_at.year):
        raise ValueError(f"issued at {invoice.issued_at}")
    return invoice
