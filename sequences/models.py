"""The table `counters`.

    counterName (S)    a counter's name, or `invoices#<series>`
    currentValue (N)   the last number that was given out
    lastDate (S)       of a series: the issue date of its last invoice

Numbers are exact, so these items are written and read as on the wire.
"""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from dynamo.models import Model

SERIES_COUNTER_PREFIX = "invoices#"


class Counter(Model):
    """A counter's item."""

    class Meta:
        table_name = "counters"

    name = UnicodeAttribute(hash_key=True, attr_name="counterName")
