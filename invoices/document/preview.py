"""The amounts of an invoice that is being written, for the page that asks for them.

They are computed by the functions that compute the stored ones, from what is known so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    amounts = tuple(each.line.amount(currency) if each.line else None for each in read)
    rated = [each.line for each in read if each.line and each.has_rate]
    unrated = [each.line for each in read if each.line and not each.has_rate]
    sums = totals(rated, currency, prices_include_tax)
    sums = Totals(sums.net + sum(line.amount(currency) for line in unrated), sums.shares)
    is_unknown = any(each.is_wrong for each in read) or _is_too_much(sums)
    return Preview(currency, amounts, None if is_unknown else sums)


@dataclass(frozen=True)
class _Read:
    """A typed line: the line, if it has an amount, and what is known about its numbers."""

    line: Line | None
    has_rate: bool
    is_wrong: bool


def _read(typed: Mapping[str, str], currency: str) -> _Read:
    numbers: dict[str, Decimal] = {}
    is_wrong = False
    for name in _NUMBERS:
        if text := typed.get(name, "").strip():
            try:
                numbers[name] = line_fields(currency)[name].read(text)
            except ValidationError:
                is_wrong = True
        elif name == "vat_rate" and typed.get("tax_category") in WITHOUT_VAT:
            numbers[name] = Decimal(0)
    line = None
    if {"quantity", "unit_price"} <= numbers.keys():
        category = typed.get("tax_category", "")
        known: dict[str, Any] = {"vat_rate": Decimal(0)} | numbers
        line = Line("", tax_category=category if category in TAX_CATEGORIES else "", **known)
    return _Read(line, "vat_rate" in numbers, is_wrong)


def _is_too_much(sums: Totals) -> bool:
    try:
        check_totals(sums)
    except ValidationError:
        return True
    return False
