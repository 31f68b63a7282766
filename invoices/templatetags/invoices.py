"""Amounts and numbers in templates, as `invoices.document.money` formats them."""

from functools import cache, partial

from django import template
from django.urls import reverse
from django.utils import dateformat
from django.utils.formats import date_format
from django.utils.translation import pgettext

from invoices.document import money
from invoices.document.amounts import TAX_CATEGORIES, Line, readable_quantity
from invoices.document.invoice import details_of
from invoices.document.places import country_name
from invoices.output.contents import amount_due, bank_account, honorific, is_marked, remarks_of
from invoices.store.lists import Listed, sums_of
from invoices.store.records import STANDINGS

register = template.Library()

#: The style of the name of a standing.
_STYLES = {"paid": "good", "overdue": "bad", "open": "open"}

#: `{{ invoice.totals.gross|amount:invoice.currency }}`: minor units with their currency.
register.filter("amount", money.readable_amount)
#: The same in a table that names the currency elsewhere.
register.filter("bare_amount", money.bare_amount)
#: `{{ line.unit_price|bare_price:invoice.currency }}`: major units, in full.
register.filter("bare_price", money.bare_price)
#: `{{ line|quantity }}`: a number, in full, with its unit.
register.filter("quantity", readable_quantity)
#: `{{ line.vat_rate|decimal }}`: a number, in full.
register.filter("decimal", money.readable_decimal)
#: `{{ line|net:invoice.currency }}`: minor units.
register.filter("net", Line.amount)
#: `{{ total|opposite }}`: an amount with the opposite sign.
register.filter("opposite", lambda amount: -amount)
#: `{{ share.tax_category|tax_category }}`: its name in the language of the page.
register.filter("tax_category", lambda name: TAX_CATEGORIES.get(name, name))
#: `{% for label, text in invoice|details %}`: the details of an invoice in one line each.
register.filter("details", lambda invoice: list(details_of(invoice, date_format)))
#: `{% if line.category|is_marked:invoice %}`: whether it gets the ※ of Japan's reduced rate.
register.filter("is_marked", is_marked)
#: `{% for text in invoice|remarks %}`: the remarks about the totals.
register.filter("remarks", lambda invoice: list(remarks_of(invoice)))
#: `{{ invoice|honorific }}` and `{{ invoice|amount_due }}`: of Japanese documents, else empty.
register.filter("honorific", honorific)
register.filter("amount_due", amount_due)
#: `{% for label, text in seller|bank_account %}`: the bank account to pay to.
register.filter("bank_account", bank_account)
#: `{{ party.country|country }}`: the country's name in the language of the page.
register.filter("country", country_name)
#: `{% if fields|any_filled %}`: whether a field of a form has a value or an error.
register.filter("any_filled", lambda fields: any(item.errors or item.value() for item in fields))


@register.filter
def status(standing: str) -> tuple[object, str] | None:
    """The state of an invoice in words, and the CSS class of its color."""
    name = STANDINGS.get(standing)
    return (name, _STYLES.get(standing, "")) if name else None


@register.inclusion_tag("invoices/_table.html")
def invoice_table(
    invoices: list[Listed], view: str = "invoice", *args: str, has_sums: bool = False
) -> dict[str, object]:
    """A table of `invoices`, whose numbers link to `view`, and their sums by currency.

    A page has up to 50 rows. Therefore, each row is a dictionary of texts, which a template reads
    quickly. Texts that are the same in several rows are made once.
    """
    if not invoices:
        return {"rows": []}
    label = invoices[0].label
    before, _label, after = reverse(view, args=[*args, label]).rpartition(label)
    names = {standing: str(name) for standing, name in STANDINGS.items()}
    day_format = pgettext("a day of the year that is shown, in Django’s letters", "N j")
    readable = cache(partial(dateformat.format, format_string=day_format))
    rows = []
    for invoice in invoices:
        due = invoice.due_date
        rows.append(
            {
                "url": f"{before}{invoice.label}{after}",
                "label": invoice.label,
                "day": invoice.issued_at.isoformat(),
                "readable_day": readable(invoice.issued_at),
                "customer": invoice.customer_name,
                "status": names[invoice.standing],
                "style": _STYLES.get(invoice.standing, ""),
                "due": due.isoformat() if due else "",
                "readable_due": readable(due) if due else "",
                "amount": money.readable_amount(invoice.gross, invoice.currency),
                "is_voided": invoice.is_voided,
            }
        )
    sums = sums_of(invoices) if has_sums else {}
    return {
        "rows": rows,
        "sums": [money.readable_amount(amount, key) for key, amount in sums.items()],
    }
