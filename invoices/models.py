"""The table `invoices`.

    series (S)                 number (N)   item
    <account pk>#<year>        1, 2, 3 …    an invoice
    requestId#<account pk>#<id>    0        the guard item of a request id: `owner` =
                                            `<series>#<number>`, `digest` of the contents

Numbers are exact, so these items are written and read as on the wire.
"""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute
from pynamodb_attributes import IntegerAttribute

from dynamo.models import Model

REQUEST_PREFIX = "requestId#"


class InvoiceItem(Model):
    """The key of an invoice or of a request id's guard item; see `invoices.documents`."""

    class Meta:
        table_name = "invoices"

    series = UnicodeAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)
