"""The tables of invoices.

`invoices`; `sequences.models` describes its layout:

    series (S)                     number (N)   item
    <account pk>#<year>            1, 2, 3 …    an invoice; see `invoices.store.records.to_item`
    requestId#<account pk>#<id>    0            the guard item of a request id, for all years

`invoicestates`, under the same keys: what happened to an invoice after it was issued.

`customers`, the address books:

    account (S)     id (S)          item
    <account pk>    <request id>    a customer: number (S), name, address, vatId, country, email,
                                    language, version

The id of a customer is the request id of the form that added it, so a form that is sent twice adds
one customer. Its number comes from the counter `customers of <account pk>`: unique within the
account, with gaps.
"""

from datetime import date
from typing import Any, Self

from django.utils.translation import gettext_lazy as _
from pynamodb.attributes import MapAttribute

from dynamo import DateAttribute, IntegerAttribute, Model, TextAttribute
from dynamo.items.plain import PlainModel
from dynamo.items.values import Item, Typed
from sequences import NumberedItem


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
    def prepared(cls, series: str, wire: Item, digest: str) -> Self:
        """An item with the attributes `wire` and the digest of its draft."""
        item = cls(series, 0)
        item._wire, item._digest = wire, digest
        return item

    @classmethod
    def request_scope(cls, series: str) -> str:
        """The account: a request id is unique across its years."""
        return series.rpartition("#")[0]

    @classmethod
    def check_order(cls, order: Typed) -> None:
        """Reject a value that is not a date. Raises ValueError."""
        date.fromisoformat(order.get("S", "none"))

    def to_wire(self) -> Item:
        return self._wire

    def digest(self) -> str:
        return self._digest


class InvoiceState(PlainModel):
    """What happened to the invoice with the same key. It is created by the first event."""

    class Meta:
        table_name = "invoicestates"

    series = TextAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)

    #: The day of the payment.
    paid_on = DateAttribute(attr_name="paidOn", null=True)
    #: The request id of the credit note that cancels the invoice.
    credited_by = TextAttribute(attr_name="creditedBy", null=True)
    #: The times the invoice was sent, by request id: `to`, `at` and `outcome`, each a text.
    sendings: Any = MapAttribute(null=True)


class CustomerItem(Model):
    """A customer in an address book; `invoices.store.customers` reads and changes them."""

    class Meta:
        table_name = "customers"
        verbose_name = _("customer")
        verbose_name_plural = _("customers")

    account = TextAttribute(hash_key=True)
    id = TextAttribute(range_key=True)
    number = TextAttribute(_("Customer number"))
    name = TextAttribute(_("Customer’s name"))
    address = TextAttribute(_("Customer’s address"), null=True)
    vat_id = TextAttribute(_("Customer’s VAT ID"), attr_name="vatId", null=True)
    country = TextAttribute(_("Customer’s country"), null=True)
    email = TextAttribute(_("Customer’s email address"), null=True)
    language = TextAttribute(null=True)
