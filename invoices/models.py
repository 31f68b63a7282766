"""The table `invoices`. `sequences.models` describes its layout.

series (S)                     number (N)   item
<account pk>#<year>            1, 2, 3 …    an invoice; see `invoices.documents.to_item`
requestId#<account pk>#<id>    0            the guard item of a request id, for all years
"""

from __future__ import annotations

from datetime import date

from dynamo.models import Item
from sequences.models import NumberedItem


class InvoiceItem(NumberedItem):
    """The key of an invoice. To issue one, `prepared` adds its contents as on the wire."""

    class Meta:
        table_name = "invoices"

    ordered_by = "issuedAt"
    scopes_have_hash = False
    #: For the reason and the time of voiding, and their names.
    reserved_bytes = 2_100

    _wire: Item
    _digest: str

    @classmethod
    def prepared(cls, series: str, wire: Item, digest: str) -> InvoiceItem:
        """An item with the attributes `wire` and the digest of its draft."""
        item = cls(series, 0)
        item._wire, item._digest = wire, digest
        return item

    @classmethod
    def request_scope(cls, series: str) -> str:
        """The account: a request id is unique across its years."""
        return series.rpartition("#")[0]

    @classmethod
    def check_order(cls, order: tuple[str, str]) -> None:
        """Reject a value that is not a date. Raises ValueError."""
        kind, value = order
        date.fromisoformat(value if kind == "S" else "none")

    def to_wire(self) -> Item:
        return self._wire

    def digest(self) -> str:
        return self._digest
