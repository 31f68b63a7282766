"""The amounts of an invoice that is being written, for the page that asks for them.

They are computed by the functions that compute the stored ones, from what is known so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError

from invoices.document.amounts import (
    TAX_CATEGORIES,
    WITHOUT_VAT,
    Line,
    Totals,
    check_totals,
    line_fields,
    totals,
)
from web.choices import is_currency

_NUMBERS = ("quantity", "unit_price", "vat_rate")


@dataclass(frozen=True)
class Preview:
    """The amount of each line in minor units, or None while it is not known.

    `totals` is None if a text is not a number, because it will count once it is corrected.
    """

    currency: str
    amounts: tuple[int | None, ...]
    totals: Totals | None


def preview(lines: Sequence[Mapping[str, str]], currency: str, prices_include_tax: bool) -> Preview:
    """The amounts of `lines`, as typed: by name the texts of their fields.

    A line counts if it has a quantity and a price. Without a rate, its VAT is left out.
    """
    if not is_currency(currency):
        return Preview("", (None,) * len(lines), None)
    read = [_read(typed, currency) for typed in lines]
    amounts = tuple(line.amount(currency) if line else None for line, _rate, _wrong in read)
    rated = [line for line, has_rate, _wrong in read if line and has_rate]
    unrated = sum(line.amount(currency) for line, has_rate, _wrong in read if line and not has_rate)
    sums = totals(rated, currency, prices_include_tax)
    sums = Totals(sums.net + unrated, sums.shares)
    is_known = not any(is_wrong for _line, _rate, is_wrong in read)
    with suppress(ValidationError):
        check_totals(sums)
        return Preview(currency, amounts, sums if is_known else None)
    return Preview(currency, amounts, None)


def _read(typed: Mapping[str, str], currency: str) -> tuple[Line | None, bool, bool]:
    """A typed line, if it has an amount; whether it has a rate; whether a text is not a number."""
    numbers: dict[str, Any] = {}
    is_wrong = False
    for name in _NUMBERS:
        if text := typed.get(name, "").strip():
            try:
                numbers[name] = line_fields(currency)[name].read(text)
            except ValidationError:
                is_wrong = True
        elif name == "vat_rate" and typed.get("tax_category") in WITHOUT_VAT:
            numbers[name] = Decimal(0)
    has_rate = "vat_rate" in numbers
    if not {"quantity", "unit_price"} <= numbers.keys():
        return None, has_rate, is_wrong
    category = typed.get("tax_category", "")
    known = {"vat_rate": Decimal(0)} | numbers
    line = Line("", tax_category=category if category in TAX_CATEGORIES else "", **known)
    return line, has_rate, is_wrong
