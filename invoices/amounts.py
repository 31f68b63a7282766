"""What an invoice adds up to: exact decimal arithmetic, rounded once where the law looks.

Amounts are whole minor units (cents of EUR, yen of JPY, fils of KWD). A line's net is its quantity
times its unit price, rounded half up to minor units, so that the lines as printed add up to the
net as printed. VAT is computed per rate on the sum of its lines, and rounded half up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

from babel.numbers import get_currency_precision

# Wide enough for the largest quantity times the largest price with every decimal of both.
_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)
_ONE = Decimal(1)


@dataclass(frozen=True)
class Line:
    """What is sold: `unit_price` is net, in major units; `vat_rate` in percent."""

    description: str
    quantity: Decimal
    unit_price: Decimal
    vat_rate: Decimal

    def net(self, currency: str) -> int:
        """The line's net amount in minor units of `currency`."""
        with localcontext(_EXACT):
            return _whole(self.quantity * self.unit_price * minor_units(currency))


@dataclass(frozen=True)
class VatShare:
    """The VAT of one rate (percent): on which net, and how much, in minor units."""

    rate: Decimal
    net: int
    vat: int


@dataclass(frozen=True)
class Totals:
    """What lines add up to, in minor units; `shares` by rising rate."""

    net: int
    shares: tuple[VatShare, ...]

    @property
    def vat(self) -> int:
        """The VAT of all rates."""
        return sum(share.vat for share in self.shares)

    @property
    def gross(self) -> int:
        """Net and VAT."""
        return self.net + self.vat


def minor_units(currency: str) -> int:
    """How many minor units make one major unit: 100 for EUR, 1 for JPY, 1000 for KWD."""
    return int(10 ** get_currency_precision(currency))


def in_major_units(amount: int, currency: str) -> Decimal:
    """An amount in minor units as the decimal that people read."""
    with localcontext(_EXACT):
        return Decimal(amount) / minor_units(currency)


def totals(lines: Iterable[Line], currency: str) -> Totals:
    """What `lines` add up to in `currency`."""
    nets: dict[Decimal, int] = {}
    for line in lines:
        nets[line.vat_rate] = nets.get(line.vat_rate, 0) + line.net(currency)
    with localcontext(_EXACT):
        shares = tuple(
            VatShare(rate, net, _whole(net * rate / 100)) for rate, net in sorted(nets.items())
        )
    return Totals(sum(nets.values()), shares)


def _whole(amount: Decimal) -> int:
    return int(amount.quantize(_ONE))
