"""The tables `counters` and `invoices`.

counters
    counterName (S)            a counter's name, or `invoices#<series>`
    currentValue (N)           the last number that was given out
    lastDate (S)               of a series: the issue date of its last invoice

invoices
    series (S)                 number (N)   what it is
    <account pk>#<year>        1, 2, 3 …    an invoice
    requestId#<account pk>#<id>    0        a guard: `owner` = `<series>#<number>`, `digest` of the
                                            contents that were asked for

Numbers are exact, so these items are written and read as on the wire: PynamoDB's numbers go
through floats.
"""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute
from pynamodb_attributes import IntegerAttribute

from dynamo.models import Model

SERIES_COUNTER_PREFIX = "invoices#"
REQUEST_PREFIX = "requestId#"


class Counter(Model):
    """A counter's item."""

    class Meta:
        table_name = "counters"

    name = UnicodeAttribute(hash_key=True, attr_name="counterName")


class InvoiceItem(Model):
    """The key of an invoice, or of a request id's guard; `sequences.invoices` has the rest."""

    class Meta:
        table_name = "invoices"

    series = UnicodeAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)
