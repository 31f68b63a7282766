"""The tables of invoices.

`invoices`; `sequences.models` describes its layout:

    series (S)                     number (N)   item
    <account pk>#<year>            1, 2, 3 …    an invoice; see `invoices.store.records.to_item`
    requestId#<account pk>#<id>    0            the guard item of a request id, for all years

`invoicestates`, under the same keys: the events after an invoice was issued.

`customers`, the address books:

    account (S)     id (S)          item
    <account pk>    <request id>    a customer: number (S), name, address, vatId, country, email,
                                    language, version

`sellers`, by `account` (S): the seller on the account's invoices: name, address, country, vatId,
taxNumber, iban, bic, accountHolder, bankName, bankBranch, accountKind, accountNumber, currency,
paymentDays, paymentTerms, version.

The id of a customer is the request id of the form that added it, so a form that is sent twice adds
one customer. Its number comes from the counter `customers of <account pk>`: unique within the
account, with gaps.
"""

from datetime import date
from typing import Any, Self

from django.utils.translation import gettext_lazy as _
from pynamodb.attributes import MapAttribute

from dynamo import DateAttribute, IntegerAttribute, Model, TextAttribute
from dynamo.client.plain import PlainModel
from dynamo.inputs import MultiLine, SingleLine
from dynamo.wire.attributes import FormAttribute
from dynamo.wire.types import Item, Typed
from invoices.document import identifiers
from invoices.document.places import Country, Currency, currency_choices
from sequences import NumberedItem


class InvoiceItem(NumberedItem):
    """The key of an invoice. To issue one, `prepared` adds its contents as on the wire."""

    class Meta:
        table_name = "invoices"

    ordered_by = "issuedAt"
    scopes_have_hash = False
    #: Space for the attributes that voiding adds: the reason and the time.
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
    """The later events of the invoice with the same key. It is created by the first event."""

    class Meta:
        table_name = "invoicestates"

    series = TextAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)

    #: The day of the payment.
    paid_on = DateAttribute(attr_name="paidOn", null=True)
    #: The request id of the credit note that cancels the invoice.
    credited_by = TextAttribute(attr_name="creditedBy", null=True)
    #: The times the invoice was sent, by request id: `to`, `at`, `outcome` and `task`, each a text.
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


class SellerProfile(Model):
    """The details of an account as the seller of invoices, and the defaults of new invoices.

    `invoices.store.sellers` reads and changes it. It exists after the user first opened the form.
    """

    class Meta:
        table_name = "sellers"
        verbose_name = _("seller")
        verbose_name_plural = _("sellers")

    account = TextAttribute(hash_key=True)
    name = SingleLine(
        _("Business name"), max_length=150, null=True, attrs={"autocomplete": "organization"}
    )
    address = MultiLine(
        _("Business address"),
        max_length=500,
        rows=3,
        null=True,
        attrs={"autocomplete": "street-address"},
    )
    country = Country(_("Country"), null=True, attrs={"autocomplete": "country"})
    vat_id = SingleLine(
        _("VAT ID"),
        max_length=32,
        null=True,
        help_text=_("In Japan, the registration number: T and 13 digits."),
    )
    tax_number = SingleLine(
        _("Tax number"),
        max_length=32,
        null=True,
        help_text=_("In France, the SIREN or SIRET number."),
    )
    account_holder = SingleLine(_("Account holder"), max_length=150, null=True)
    #: An IBAN has at most 34 characters, and is often typed in groups of four.
    iban = SingleLine(
        _("IBAN"),
        max_length=50,
        rule=identifiers.clean_iban,
        null=True,
        attrs={"spellcheck": "false"},
    )
    bic = SingleLine(
        _("BIC"),
        max_length=20,
        rule=identifiers.clean_bic,
        null=True,
        attrs={"spellcheck": "false"},
    )
    bank_name = SingleLine(_("Bank"), max_length=100, null=True)
    bank_branch = SingleLine(_("Branch"), max_length=100, null=True)
    account_kind = SingleLine(_("Kind of account"), max_length=20, null=True)
    account_number = SingleLine(_("Account number"), max_length=34, null=True)
    currency = Currency(_("Currency"), offered=lambda: (("", "–"), *currency_choices()), null=True)
    payment_days = IntegerAttribute(
        _("Days until payment"),
        attr_name="paymentDays",
        null=True,
        min_value=0,
        max_value=365,
        help_text=_("From the date of the invoice."),
    )
    payment_terms = MultiLine(
        _("Payment terms"),
        max_length=500,
        null=True,
        help_text=_("Left out of invoices in another language than those within your country."),
    )

    def fitting_vat_id(self, vat_id: str | None, country: str | None) -> str | None:
        """`vat_id` in the form of `country`.

        The stored one is accepted, because it may be older than this rule.

        Raises:
            ValidationError: a new one does not fit the country; see `identifiers`.
        """
        if not vat_id or vat_id == self.vat_id:
            return vat_id
        return identifiers.clean_vat_id(vat_id, country or "")


#: The attributes that people type, by name.
SELLER_VALUES: dict[str, FormAttribute] = {
    name: value
    for name, value in vars(SellerProfile).items()
    if isinstance(value, FormAttribute) and value.label is not None
}
