"""Amounts and numbers in templates, as `invoices.values.money` formats them."""

from __future__ import annotations

from typing import Any

from django import template

from invoices.documents import Invoice
from invoices.values import money
from invoices.values.amounts import TAX_CATEGORIES, Line
from web.choices import country_name
from web.identifiers import readable_iban

register = template.Library()

#: `{{ invoice.totals.gross|amount:invoice.currency }}`: minor units with their currency.
register.filter("amount", money.readable_amount)
#: The same in a table that names the currency elsewhere.
register.filter("bare_amount", money.bare_amount)
#: `{{ line.unit_price|bare_price:invoice.currency }}`: major units, in full.
register.filter("bare_price", money.bare_price)
#: `{{ line.quantity|decimal }}`: a number, in full.
register.filter("decimal", money.readable_decimal)
#: `{{ party.country|country }}`: the country's name in the language of the page.
register.filter("country", country_name)
#: `{{ seller.iban|iban }}`: in groups of four.
register.filter("iban", readable_iban)


@register.filter
def tax_category(name: str) -> Any:
    """The name of a tax category in the language of the page."""
    return TAX_CATEGORIES.get(name, name)


@register.filter
def marks_reduced(invoice: Invoice, line: Line | None = None) -> bool:
    """Whether `line`, or any line, gets the ※ that Japan requires at its reduced rate."""
    lines = invoice.lines if line is None else (line,)
    return invoice.seller.country == "JP" and any(each.category == "reduced" for each in lines)


@register.filter
def opposite(amount: int) -> int:
    """The amount with the other sign."""
    return -amount


@register.filter
def net(line: Line, currency: str) -> int:
    """A line's net amount in minor units."""
    return line.amount(currency)
