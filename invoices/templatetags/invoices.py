"""Amounts and numbers in templates, as `invoices.money` formats them."""

from __future__ import annotations

from django import template

from invoices import money
from invoices.amounts import Line

register = template.Library()

#: `{{ invoice.totals.gross|amount:invoice.currency }}`: minor units with their currency.
register.filter("amount", money.readable_amount)
#: The same in a table that names the currency elsewhere.
register.filter("bare_amount", money.bare_amount)
#: `{{ line.unit_price|bare_price:invoice.currency }}`: major units, in full.
register.filter("bare_price", money.bare_price)
#: `{{ line.quantity|decimal }}`: a number, in full.
register.filter("decimal", money.readable_decimal)


@register.filter
def opposite(amount: int) -> int:
    """The amount with the other sign."""
    return -amount


@register.filter
def net(line: Line, currency: str) -> int:
    """A line's net amount in minor units."""
    return line.amount(currency)
