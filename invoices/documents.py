"""What an invoice says, and how it is stored.

An issued invoice never changes, except for one step from *issued* to *voided*, with a reason. The
seller and the customer stay as they were when it was issued.

Every field is declared once, in `Party`, `Line` or `Contents`; see `invoices.fields`. How to add
one: `docs/developers.md`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any, ClassVar, Literal

from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dynamo.exceptions import DamagedItem
from dynamo.models import Item
from invoices.exceptions import UnknownInvoice
from invoices.fields import Field, declare, fields_of, from_wire, to_wire
from invoices.kinds import (
    Amount,
    Currency,
    Day,
    Moment,
    MultiLine,
    Number,
    SingleLine,
)
from invoices.models import InvoiceItem
from invoices.money import minor_units

Status = Literal["issued", "voided"]

#: The language of invoices that are stored without one.
DEFAULT_LANGUAGE = "en"

NAME_MAX_LENGTH = 200
MAX_LINES = 200
#: In minor units. Below 2^53, so that programs whose numbers are floats read it exactly.
GROSS_MAX = 10**15

_LABEL = re.compile(r"(\d{4})-(\d{6,15})")
# Wide enough for the largest quantity times the largest price with all decimals of both.
_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)


# What an invoice says ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Party:
    """The seller or the customer. The form asks for the customer; the profile has the seller."""

    always_digested: ClassVar = ("name", "address", "vat_id")

    name: str = field(metadata=declare(SingleLine(NAME_MAX_LENGTH), _("Customer’s name")))
    address: str = field(
        default="", metadata=declare(MultiLine(500, rows=3), _("Customer’s address"))
    )
    vat_id: str = field(default="", metadata=declare(SingleLine(100)))


@dataclass(frozen=True)
class Line:
    """What is sold. `unit_price` is net, in major units; `vat_rate` is in percent.

    A negative quantity takes goods back, a negative price is a discount.
    """

    always_digested: ClassVar = ("description", "quantity", "unit_price", "vat_rate")

    description: str = field(metadata=declare(SingleLine(1_000), _("Description")))
    quantity: Decimal = field(
        metadata=declare(Number(9, 6, may_be_zero=False), _("Quantity"), initial="1")
    )
    unit_price: Decimal = field(metadata=declare(Number(12, 6), _("Unit price")))
    vat_rate: Decimal = field(metadata=declare(Number(3, 3, bounds=(0, 100)), _("VAT %")))

    def net(self, currency: str) -> int:
        """The net amount in minor units of `currency`, rounded half up.

        Because lines are rounded one by one, they add up to the net total as printed.
        """
        with localcontext(_EXACT):
            return _whole(self.quantity * self.unit_price * minor_units(currency))


@dataclass(frozen=True)
class Contents:
    """What a draft and the invoice made of it have in common."""

    always_digested: ClassVar = ("currency", "note")

    customer: Party
    lines: tuple[Line, ...]
    currency: str = field(metadata=declare(Currency(), _("Currency"), initial="EUR"))
    note: str = field(
        default="",
        metadata=declare(
            MultiLine(1_000),
            _("Note"),
            help_text=_("Printed below the total. For example, when and how to pay."),
        ),
    )


@dataclass(frozen=True)
class Draft(Contents):
    """An invoice before it has a number. With `issued_on` None, it is issued today."""

    issued_on: date | None = None

    def digest(self) -> str:
        """The SHA-256 of the contents, in hex. Equal for drafts that ask for the same invoice."""
        currency, note, *others = _digested(self)
        contents = [
            _digested(self.customer),
            [_digested(line) for line in self.lines],
            currency,
            self.issued_on.isoformat() if self.issued_on else None,
            note,
            *others,
        ]
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


def _digested(part: Party | Line | Draft) -> list[Any]:
    """The texts of the fields that are `always_digested`, and last the others, by name.

    The others are left out while they are at their default, so a new field does not change the
    digests that are stored with request ids.
    """
    always, others = [], {}
    for each in fields_of(type(part)):
        value = getattr(part, each.name)
        if each.name in part.always_digested:
            always.append(each.kind.to_text(value))
        elif value != each.default:
            others[each.name] = each.kind.to_text(value)
    return [*always, others] if others else always


@dataclass(frozen=True)
class VatShare:
    """The VAT of one rate (percent), and the net amount it is on, in minor units."""

    rate: Decimal = field(metadata=declare(Number(3, 3)))
    net: int = field(metadata=declare(Amount()))
    vat: int = field(metadata=declare(Amount()))


@dataclass(frozen=True)
class Totals:
    """The sums of the lines, in minor units. `shares` are ordered by rate."""

    net: int
    shares: tuple[VatShare, ...]

    @property
    def vat(self) -> int:
        return sum(share.vat for share in self.shares)

    @property
    def gross(self) -> int:
        return self.net + self.vat


def totals(lines: Iterable[Line], currency: str) -> Totals:
    """The sums of `lines`. VAT is computed on the sum of the lines of a rate, rounded half up."""
    nets: dict[Decimal, int] = {}
    for line in lines:
        nets[line.vat_rate] = nets.get(line.vat_rate, 0) + line.net(currency)
    with localcontext(_EXACT):
        shares = tuple(
            VatShare(rate, net, _whole(net * rate / 100)) for rate, net in sorted(nets.items())
        )
    return Totals(sum(nets.values()), shares)


def check_line_count(lines: Sequence[Line]) -> None:
    """Raises ValidationError if there is no line, or too many."""
    if not lines:
        raise ValidationError(_("An invoice needs at least one line."), code="no_lines")
    if len(lines) > MAX_LINES:
        raise ValidationError(
            _("An invoice has at most %(limit)s lines."), "max_lines", {"limit": MAX_LINES}
        )


def check_totals(sums: Totals) -> None:
    """Raises ValidationError if programs might not read the sums exactly."""
    if max(abs(sums.net), abs(sums.vat), abs(sums.gross)) > GROSS_MAX:
        raise ValidationError(_("The total of the invoice is too large."), code="too_much")


def _whole(amount: Decimal) -> int:
    return int(amount.quantize(Decimal(1)))


@dataclass(frozen=True, kw_only=True)
class Invoice(Contents):
    """An issued invoice. `language` is the one it was issued in; its PDF stays in this language."""

    account: str
    number: int
    seller: Party
    totals: Totals
    issued_at: date = field(metadata=declare(Day()))
    request_id: str = field(default="", metadata=declare(SingleLine(100)))
    status: Status = field(default="issued", metadata=declare(SingleLine(10)))
    void_reason: str = field(default="", metadata=declare(SingleLine(500)))
    voided_at: datetime | None = field(default=None, compare=False, metadata=declare(Moment()))
    language: str = field(default=DEFAULT_LANGUAGE, metadata=declare(SingleLine(35)))

    @property
    def series(self) -> str:
        return series_of(self.account, self.issued_at.year)

    @property
    def label(self) -> str:
        """The number as people write it: `2026-000042`."""
        return label_of(self.issued_at.year, self.number)

    @property
    def voided_on(self) -> date | None:
        """The day it was voided, in the time zone of the settings, if it is known."""
        if self.voided_at is None:
            return None
        return self.voided_at.astimezone(timezone.get_default_timezone()).date()

    @property
    def is_voided(self) -> bool:
        return self.status == "voided"


_CONTENTS = [each.name for each in dataclasses.fields(Contents)]


def draw_up(
    draft: Draft,
    account: str,
    seller: Party,
    today: date,
    request_id: str,
    language: str = DEFAULT_LANGUAGE,
) -> Invoice:
    """The invoice of `draft`, with number 0."""
    contents = {name: getattr(draft, name) for name in _CONTENTS}
    return Invoice(
        **contents,
        account=account,
        number=0,
        issued_at=draft.issued_on or today,
        seller=seller,
        totals=totals(draft.lines, draft.currency),
        request_id=request_id,
        language=language,
    )


# Its number --------------------------------------------------------------------------------------


def series_of(account: str, year: int) -> str:
    """The series of the invoices of an account's year: `<account pk>#<year>`."""
    return f"{account}#{year}"


def label_of(year: int, number: int) -> str:
    """A number as people write it: `2026-000042`."""
    return f"{year}-{number:06}"


def parse_label(label: str) -> tuple[int, int]:
    """The year and the number of a label.

    Raises:
        UnknownInvoice: it is not a label.
    """
    match = _LABEL.fullmatch(label)
    year, number = (int(match[1]), int(match[2])) if match else (0, 0)
    # An invoice has one label: without more zeros, and in ASCII digits.
    if not number or label != label_of(year, number):
        raise UnknownInvoice(label)
    return year, number


# What people type --------------------------------------------------------------------------------

_CUSTOMER_FIELDS = {f"customer_{each.name}": each for each in fields_of(Party) if each.is_typed}
_OTHER_FIELDS = {each.name: each for each in fields_of(Contents) if each.is_typed}

#: What people type apart from the lines, by the names of the form.
TYPED_FIELDS: dict[str, Field] = _CUSTOMER_FIELDS | _OTHER_FIELDS


def draft_of(
    values: Mapping[str, Any], lines: Iterable[Line], issued_on: date | None = None
) -> Draft:
    """The draft of clean values by the names of `TYPED_FIELDS`."""
    customer = {each.name: values[name] for name, each in _CUSTOMER_FIELDS.items()}
    others = {name: values[name] for name in _OTHER_FIELDS}
    return Draft(customer=Party(**customer), lines=tuple(lines), issued_on=issued_on, **others)


def typed_values_of(invoice: Invoice) -> dict[str, str]:
    """What a person would type to issue the same again, apart from the lines."""
    customer = {
        name: each.to_text(getattr(invoice.customer, each.name))
        for name, each in _CUSTOMER_FIELDS.items()
    }
    others = {name: each.to_text(getattr(invoice, name)) for name, each in _OTHER_FIELDS.items()}
    return customer | others


# How it is stored --------------------------------------------------------------------------------


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
        seller=Party(**from_wire(Party, item, "seller")),
        customer=Party(**from_wire(Party, item, "customer")),
        lines=tuple(Line(**from_wire(Line, line["M"])) for line in item["lines"]["L"]),
        totals=Totals(int(item["net"]["N"]), shares),
    )
    if year != str(invoice.issued_at.year):
        raise ValueError(f"issued at {invoice.issued_at}")
    return invoice
