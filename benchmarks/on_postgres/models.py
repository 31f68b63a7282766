"""Users and invoices as rows, with what the site's templates show."""

from __future__ import annotations

import dataclasses
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import connection, models, transaction
from django.utils.functional import cached_property
from django.utils.timezone import localdate

from invoices.document import invoice as documents
from invoices.document.amounts import Line, Totals, VatShare, totals
from invoices.document.invoice import Customer, Draft, Seller, label_of
from invoices.store.records import Record

_NEXT_NUMBER = """
    INSERT INTO on_postgres_series (owner_id, year, last) VALUES (%s, %s, 1)
    ON CONFLICT (owner_id, year) DO UPDATE SET last = on_postgres_series.last + 1 RETURNING last
"""


class User(AbstractUser):
    """Django's user with the site's other values."""

    email = models.EmailField(unique=True)
    full_name = models.CharField(max_length=200, blank=True)
    phone_number = models.CharField(max_length=50, blank=True)
    email_confirmed_at = models.DateTimeField(null=True)
    business_name = models.CharField(max_length=200, blank=True)
    business_address = models.TextField(blank=True)
    vat_id = models.CharField(max_length=100, blank=True)
    country = models.CharField(max_length=2, blank=True)
    tax_number = models.CharField(max_length=100, blank=True)
    iban = models.CharField(max_length=34, blank=True)
    bic = models.CharField(max_length=11, blank=True)
    account_holder = models.CharField(max_length=200, blank=True)
    bank_name = models.CharField(max_length=100, blank=True)
    bank_branch = models.CharField(max_length=100, blank=True)
    account_kind = models.CharField(max_length=20, blank=True)
    account_number = models.CharField(max_length=34, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    payment_days = models.CharField(max_length=3, blank=True)
    payment_terms = models.TextField(blank=True)
    time_zone = models.CharField(max_length=50, blank=True)
    language = models.CharField(max_length=10, blank=True)

    awaited_email = None

    @property
    def is_confirmed(self) -> bool:
        return self.email_confirmed_at is not None


class Series(models.Model):  # noqa: DJ008 - never printed
    """The last number of an account's year."""

    owner = models.ForeignKey(User, models.CASCADE)
    year = models.IntegerField()
    last = models.IntegerField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint("owner", "year", name="one_series")]


class Invoice(models.Model):  # noqa: DJ008 - never printed
    """An issued invoice. What only its own page shows is in JSON columns."""

    owner = models.ForeignKey(User, models.CASCADE)
    year = models.IntegerField()
    number = models.IntegerField()
    issued_at = models.DateField()
    customer_name = models.CharField(max_length=200)
    customer_address = models.TextField(blank=True)
    seller_name = models.CharField(max_length=200)
    seller_address = models.TextField(blank=True)
    seller_vat_id = models.CharField(max_length=100, blank=True)
    currency = models.CharField(max_length=3)
    net = models.BigIntegerField()
    shares = models.JSONField()
    note = models.TextField(blank=True)
    status = models.CharField(max_length=10, default="issued")
    due_date = models.DateField(null=True)
    paid_on = models.DateField(null=True)
    credited_by = models.IntegerField(null=True)
    request_id = models.UUIDField(unique=True)

    is_credit_note = False

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("owner", "year", "number", name="one_number")
        ]

    @property
    def label(self) -> str:
        return label_of(self.year, self.number)

    @property
    def gross(self) -> int:
        return self.totals.gross

    @property
    def standing(self) -> str:
        return self.record(localdate()).standing

    @property
    def is_voided(self) -> bool:
        return self.status == "voided"

    @property
    def customer(self) -> Customer:
        return Customer(self.customer_name, self.customer_address)

    @property
    def seller(self) -> Seller:
        return Seller(self.seller_name, self.seller_address, self.seller_vat_id)

    @cached_property
    def totals(self) -> Totals:
        shares = tuple(VatShare(Decimal(rate), net, vat) for rate, net, vat in self.shares)
        return Totals(self.net, shares)

    def record(self, today: date) -> Record:
        """The row is both the invoice and what happened to it."""
        row: Any = self
        return Record(row, row, today)

    @cached_property
    def lines(self) -> list[Line]:
        rows = self.invoiceline_set.order_by("position")
        return [Line(row.description, row.quantity, row.unit_price, row.vat_rate) for row in rows]


#: What no invoice has here is as in an invoice without it.
for _field in dataclasses.fields(documents.Invoice):
    if not hasattr(Invoice, _field.name):
        setattr(Invoice, _field.name, _field.default)


class InvoiceLine(models.Model):  # noqa: DJ008 - never printed
    invoice = models.ForeignKey(Invoice, models.CASCADE)
    position = models.IntegerField()
    description = models.TextField()
    quantity = models.DecimalField(max_digits=15, decimal_places=6)
    unit_price = models.DecimalField(max_digits=18, decimal_places=6)
    vat_rate = models.DecimalField(max_digits=6, decimal_places=3)


def issue(draft: Draft, owner: User, seller: Seller, today: date, request_id: str) -> Invoice:
    """The next number of the owner's year with its rows, in one transaction: no gap.

    The number is drawn as django-sequences does.
    """
    sums = totals(draft.lines, draft.currency)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_NEXT_NUMBER, [owner.pk, today.year])
            [number] = cursor.fetchone()
        invoice = Invoice.objects.create(
            owner=owner,
            year=today.year,
            number=number,
            issued_at=today,
            customer_name=draft.customer.name,
            customer_address=draft.customer.address,
            seller_name=seller.name,
            seller_address=seller.address,
            seller_vat_id=seller.vat_id,
            currency=draft.currency,
            net=sums.net,
            shares=[[str(share.rate), share.net, share.vat] for share in sums.shares],
            note=draft.note,
            request_id=request_id,
        )
        InvoiceLine.objects.bulk_create(
            InvoiceLine(
                invoice=invoice,
                position=position,
                description=line.description,
                quantity=line.quantity,
                unit_price=line.unit_price,
                vat_rate=line.vat_rate,
            )
            for position, line in enumerate(draft.lines)
        )
    return invoice
