"""The lines of an invoice and their sums: every rule of rounding.

Amounts are whole minor units. VAT is rounded once for each category and rate, half up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _, pgettext_lazy

from dynamo.inputs import Choice
from invoices.document.fields import Amount, Number, SingleLine, field, fields_of
from invoices.document.money import EXACT, minor_units, readable_decimal
from invoices.document.places import is_currency

MAX_LINES = 200
#: The most characters of all descriptions of an invoice. The PDF takes 0.3 s of CPU time with this
#: number, in any script. With the 200,000 that the fields alone allow, it took 1.3 s.
MAX_DESCRIBED = 20_000
#: The largest gross total, in minor units. It is below 2^53, so programs whose numbers are floats
#: read it exactly.
GROSS_MAX = 10**15

#: The tax categories, as stored, and their names.
TAX_CATEGORIES = {
    "standard": _("Standard rate"),
    "reduced": _("Reduced rate"),
    "zero": _("Zero rate"),
    "exempt": _("Exempt from VAT"),
    "reverse_charge": _("Reverse charge"),
    "intra_community": _("Intra-community supply"),
    "export": _("Export"),
}
_WITH_VAT = {"standard", "reduced"}

#: The units by their codes of UN/ECE Recommendation 20: their names and printed forms.
UNITS = {
    "HUR": (_("Hour"), _("h")),
    "DAY": (pgettext_lazy("a unit", "Day"), _("d")),
    "MON": (_("Month"), _("mo.")),
    "H87": (_("Piece"), _("pcs")),
    "KGM": (_("Kilogram"), _("kg")),
    "MTR": (_("Meter"), _("m")),
    "LS": (_("Lump sum"), _("flat")),
}
#: The categories whose rate is 0, so that it need not be typed.
WITHOUT_VAT = TAX_CATEGORIES.keys() - _WITH_VAT


def category_of_rate(rate: Decimal) -> str:
    """The category of a line that does not name one."""
    return "standard" if rate else "zero"


@dataclass(frozen=True)
class Line:
    """A sold item. `unit_price` is in major units; `vat_rate` is in percent.

    The price is net, unless the prices of the invoice include tax. A negative quantity takes goods
    back, a negative price is a discount. Without a `tax_category`, the rate decides it.
    """

    always_digested: ClassVar = ("description", "quantity", "unit_price", "vat_rate")

    description: str = field(SingleLine(_("Description"), max_length=1_000))
    quantity: Decimal = field(
        Number(_("Quantity"), before=9, after=6, may_be_zero=False, initial="1")
    )
    unit_price: Decimal = field(Number(_("Unit price"), before=12, after=6))
    vat_rate: Decimal = field(
        Number(_("VAT %"), before=3, after=3, bounds=(0, 100), is_percentage=True)
    )
    tax_category: str = field(
        Choice(
            _("Tax category"),
            is_known=TAX_CATEGORIES.__contains__,
            offered=lambda: [("", _("By the rate")), *TAX_CATEGORIES.items()],
            default="",
        )
    )
    unit: str = field(
        Choice(
            _("Unit"),
            is_known=UNITS.__contains__,
            offered=lambda: [("", "–"), *((code, name) for code, (name, _short) in UNITS.items())],
            default="",
        )
    )

    @property
    def category(self) -> str:
        return self.tax_category or category_of_rate(self.vat_rate)

    def amount(self, currency: str) -> int:
        """Quantity × unit price in minor units of `currency`, rounded half up.

        Because lines are rounded one by one, they add up to the total as printed.
        """
        with localcontext(EXACT):
            return _whole(self.quantity * self.unit_price * minor_units(currency))


def readable_quantity(line: Line) -> str:
    """The quantity with its unit: `12 h`."""
    number = readable_decimal(line.quantity)
    printed = UNITS[line.unit][1] if line.unit in UNITS else line.unit
    return f"{number}\N{NO-BREAK SPACE}{printed}" if printed else number


#: The fields of a line, by name.
LINE_FIELDS = {item.name: item for item in fields_of(Line)}


def price_field(currency: str) -> forms.Field:
    """The form field of the unit price on an invoice in `currency`."""
    is_whole = is_currency(currency) and minor_units(currency) == 1
    return LINE_FIELDS["unit_price"].form_field(is_grouped=is_whole)


@dataclass(frozen=True)
class VatShare:
    """The VAT of one category and rate (percent), and its net amount, in minor units.

    `tax_category` is empty if it follows from the rate.
    """

    rate: Decimal = field(Number(before=3, after=3))
    net: int = field(Amount())
    vat: int = field(Amount())
    tax_category: str = field(SingleLine(max_length=20, default=""))

    @property
    def category(self) -> str:
        return self.tax_category or category_of_rate(self.rate)


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


def totals(lines: Iterable[Line], currency: str, prices_include_tax: bool = False) -> Totals:
    """The sums of `lines`. VAT is computed on the sum of the lines of a category and rate.

    If prices include tax, the gross total is the sum of the lines, and a share's VAT is the part
    rate / (100 + rate) of its gross amount.
    """
    sums: dict[tuple[Decimal, str], int] = {}
    for line in lines:
        key = line.vat_rate, line.category
        sums[key] = sums.get(key, 0) + line.amount(currency)
    shares = []
    with localcontext(EXACT):
        for (rate, category), amount in sorted(sums.items()):
            vat = _whole(amount * rate / (100 + rate if prices_include_tax else 100))
            net = amount - vat if prices_include_tax else amount
            named = "" if category == category_of_rate(rate) else category
            shares.append(VatShare(rate, net, vat, named))
    return Totals(sum(share.net for share in shares), tuple(shares))


def line_nets(
    lines: Sequence[Line], sums: Totals, currency: str, prices_include_tax: bool
) -> list[int]:
    """The net amounts of `lines`, in minor units; they add up to those of the shares of `sums`.

    If prices include tax, the net amount of a share is divided among its lines in proportion, and
    the remaining units go to the largest remainders. A credit note has the same net amounts as its
    invoice, with the other sign.
    """
    amounts = [line.amount(currency) for line in lines]
    if not prices_include_tax:
        return amounts
    nets = amounts.copy()
    keys = [(line.vat_rate, line.category) for line in lines]
    with localcontext(EXACT):
        for share in sums.shares:
            own = [at for at, key in enumerate(keys) if key == (share.rate, share.category)]
            # The sign is removed first, because rounding down is not symmetric around zero.
            sign = -1 if next((amounts[at] for at in own if amounts[at]), 0) < 0 else 1
            exact = {at: sign * amounts[at] * 100 / (100 + share.rate) for at in own}
            down = {at: int(exact[at].to_integral_value(ROUND_FLOOR)) for at in own}
            left = sign * share.net - sum(down.values())
            up = set(sorted(own, key=lambda at: down[at] - exact[at])[:left])
            for at in own:
                nets[at] = sign * (down[at] + (at in up))
    return nets


def check_described(descriptions: Iterable[str]) -> None:
    """Raises ValidationError if all descriptions together are too long."""
    if sum(map(len, descriptions)) > MAX_DESCRIBED:
        raise ValidationError(
            _(
                "The descriptions of all lines together have more than %(limit)s characters. "
                "Shorten them, or split the invoice into two."
            ),
            "too_long",
            {"limit": MAX_DESCRIBED},
        )


def check_lines(lines: Sequence[Line]) -> None:
    """Raises ValidationError if there are too many lines, or if their descriptions are too long."""
    check_described(line.description for line in lines)
    if len(lines) > MAX_LINES:
        raise ValidationError(
            _("An invoice has at most %(limit)s lines."), "max_lines", {"limit": MAX_LINES}
        )


def check_line(line: Line) -> None:
    """Raises ValidationError at `vat_rate` if the rate contradicts the tax category."""
    if not line.tax_category or (line.tax_category in _WITH_VAT) == bool(line.vat_rate):
        return
    if line.vat_rate:
        message = _("Enter 0, because this tax category has no VAT.")
    else:
        message = _("Enter a rate above 0, or choose another tax category.")
    raise ValidationError({"vat_rate": ValidationError(message, code="category")})


def check_totals(sums: Totals) -> None:
    """Raises ValidationError if programs might not read the sums exactly."""
    if max(abs(sums.net), abs(sums.vat), abs(sums.gross)) > GROSS_MAX:
        raise ValidationError(_("The total of the invoice is too large."), code="too_much")


def _whole(amount: Decimal) -> int:
    return int(amount.quantize(Decimal(1)))
