"""What an invoice is, and how it stands in its item.

An invoice is a fact: once issued it never changes, but for one step from *issued* to *voided*,
with a reason. What it says of the seller and the customer is kept as it was.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from dynamo.exceptions import DamagedItem
from dynamo.models import Item
from invoices.amounts import Line, Totals, VatShare, totals
from invoices.days import day_of
from invoices.exceptions import UnknownInvoice
from invoices.models import InvoiceItem

Status = Literal["issued", "voided"]

#: Of invoices that name none, as all did before there was a second one.
DEFAULT_LANGUAGE = "en"

_NUMBER = re.compile(r"(\d{4})-(\d{6,15})")


@dataclass(frozen=True)
class Party:
    """Who sells or buys; what is unknown is empty. `address` may have several lines."""

    name: str
    address: str = ""
    vat_id: str = ""


@dataclass(frozen=True)
class Draft:
    """What an invoice is to say, before it has a number.

    `issued_on` is None for today, in the configured time zone, whenever the draft is issued.
    """

    customer: Party
    lines: tuple[Line, ...]
    currency: str
    issued_on: date | None = None
    note: str = ""

    def digest(self) -> str:
        """SHA-256, in hex, of the contents: equal for drafts that ask for the same invoice."""
        contents = [
            [self.customer.name, self.customer.address, self.customer.vat_id],
            [
                [line.description, *map(_plain, (line.quantity, line.unit_price, line.vat_rate))]
                for line in self.lines
            ],
            self.currency,
            self.issued_on.isoformat() if self.issued_on else None,
            self.note,
        ]
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


@dataclass(frozen=True)
class Invoice:
    """An issued invoice. Amounts are minor units of `currency`; `issued_at` is a date.

    `language` is the one that the seller issued it in, and so the one of its PDF: whoever opens it,
    whenever, gets the same bytes.
    """

    account: str
    number: int
    issued_at: date
    seller: Party
    customer: Party
    lines: tuple[Line, ...]
    currency: str
    totals: Totals
    request_id: str
    note: str = ""
    status: Status = "issued"
    void_reason: str = ""
    voided_at: datetime | None = field(default=None, compare=False)
    language: str = DEFAULT_LANGUAGE

    @property
    def series(self) -> str:
        """The series that numbers it: `<account pk>#<year>`."""
        return series_of(self.account, self.issued_at.year)

    @property
    def label(self) -> str:
        """Its number as people write it: `2026-000042`."""
        return label_of(self.issued_at.year, self.number)

    @property
    def voided_on(self) -> date | None:
        """The day it was voided on, where that is known."""
        return day_of(self.voided_at) if self.voided_at else None

    @property
    def is_voided(self) -> bool:
        """Whether it was voided."""
        return self.status == "voided"


def series_of(account: str, year: int) -> str:
    """The name of the series of an account's year."""
    return f"{account}#{year}"


def label_of(year: int, number: int) -> str:
    """A number as people write it: `2026-000042`."""
    return f"{year}-{number:06}"


def parse_label(label: str) -> tuple[int, int]:
    """Year and number of a label.

    Raises:
        UnknownInvoice: it is none.
    """
    match = _NUMBER.fullmatch(label)
    year, number = (int(match[1]), int(match[2])) if match else (0, 0)
    # An invoice has one label: no further zeros, no digits of other scripts.
    if not number or label != label_of(year, number):
        raise UnknownInvoice(label)
    return year, number


def draw_up(
    draft: Draft,
    account: str,
    seller: Party,
    today: date,
    request_id: str,
    language: str = DEFAULT_LANGUAGE,
) -> Invoice:
    """The invoice that `draft` asks for, all but its number (0)."""
    return Invoice(
        account=account,
        number=0,
        issued_at=draft.issued_on or today,
        seller=seller,
        customer=draft.customer,
        lines=draft.lines,
        currency=draft.currency,
        totals=totals(draft.lines, draft.currency),
        request_id=request_id,
        note=draft.note,
        language=language,
    )


def to_item(invoice: Invoice) -> Item:
    """The item as on the wire; what is empty is left out."""
    texts = {
        "sellerName": invoice.seller.name,
        "sellerAddress": invoice.seller.address,
        "sellerVatId": invoice.seller.vat_id,
        "customerName": invoice.customer.name,
        "customerAddress": invoice.customer.address,
        "customerVatId": invoice.customer.vat_id,
        "currency": invoice.currency,
        "note": invoice.note,
        "status": invoice.status,
        "voidReason": invoice.void_reason,
        "voidedAt": invoice.voided_at.isoformat() if invoice.voided_at else "",
        "requestId": invoice.request_id,
        "issuedAt": invoice.issued_at.isoformat(),
        "language": invoice.language if invoice.language != DEFAULT_LANGUAGE else "",
    }
    return {
        "series": {"S": invoice.series},
        "number": {"N": str(invoice.number)},
        "net": {"N": str(invoice.totals.net)},
        "gross": {"N": str(invoice.totals.gross)},
        "vat": {"L": [_share_to_wire(share) for share in invoice.totals.shares]},
        "lines": {"L": [_line_to_wire(line) for line in invoice.lines]},
        **{name: {"S": text} for name, text in texts.items() if text},
    }


def from_item(item: Item) -> Invoice:
    """The invoice of an item as on the wire.

    Raises:
        DamagedItem: something of it is missing, of another type, or of another series.
    """
    try:
        return _invoice_of(item)
    except (KeyError, ValueError) as error:
        key = f"{item['series']['S']}#{item['number']['N']}"
        raise DamagedItem(InvoiceItem.table(), key, f"no invoice ({error!r})") from error


def _invoice_of(item: Item) -> Invoice:
    def text(name: str) -> str:
        return str(item.get(name, {}).get("S", ""))

    account, _, year = text("series").rpartition("#")
    issued_at = date.fromisoformat(text("issuedAt"))
    if year != str(issued_at.year):
        raise ValueError(f"issued at {issued_at}")
    voided_at = text("voidedAt")
    status: Status = "voided" if text("status") == "voided" else "issued"
    return Invoice(
        account=account,
        number=int(item["number"]["N"]),
        issued_at=issued_at,
        seller=Party(text("sellerName"), text("sellerAddress"), text("sellerVatId")),
        customer=Party(text("customerName"), text("customerAddress"), text("customerVatId")),
        lines=tuple(_line_from_wire(each["M"]) for each in item["lines"]["L"]),
        currency=text("currency"),
        totals=Totals(
            int(item["net"]["N"]), tuple(_share_from_wire(each["M"]) for each in item["vat"]["L"])
        ),
        request_id=text("requestId"),
        note=text("note"),
        status=status,
        void_reason=text("voidReason"),
        voided_at=datetime.fromisoformat(voided_at) if voided_at else None,
        language=text("language") or DEFAULT_LANGUAGE,
    )


def _plain(number: Decimal) -> str:
    # Not by `normalize`, which rounds to the 28 digits of the context.
    whole, point, decimals = f"{number:f}".partition(".")
    plain = whole + (point + decimals).rstrip("0").rstrip(".")
    return "0" if plain == "-0" else plain


def _line_to_wire(line: Line) -> dict[str, Any]:
    return {
        "M": {
            "description": {"S": line.description},
            "quantity": {"N": _plain(line.quantity)},
            "unitPrice": {"N": _plain(line.unit_price)},
            "vatRate": {"N": _plain(line.vat_rate)},
        }
    }


def _line_from_wire(wire: Item) -> Line:
    return Line(
        wire["description"]["S"],
        Decimal(wire["quantity"]["N"]),
        Decimal(wire["unitPrice"]["N"]),
        Decimal(wire["vatRate"]["N"]),
    )


def _share_to_wire(share: VatShare) -> dict[str, Any]:
    return {
        "M": {
            "rate": {"N": _plain(share.rate)},
            "net": {"N": str(share.net)},
            "vat": {"N": str(share.vat)},
        }
    }


def _share_from_wire(wire: Item) -> VatShare:
    return VatShare(Decimal(wire["rate"]["N"]), int(wire["net"]["N"]), int(wire["vat"]["N"]))
