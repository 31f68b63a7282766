"""The models of the test app."""

from datetime import UTC, datetime
from typing import Any

from django.core.validators import validate_email
from django.db.models import TextChoices
from pynamodb.attributes import (
    BinaryAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    NumberSetAttribute,
    UnicodeSetAttribute,
)

from dynamo import (
    BooleanAttribute,
    DateAttribute,
    DateTimeAttribute,
    DecimalAttribute,
    GlobalSecondaryIndex,
    IntegerAttribute,
    JSONAttribute,
    Model,
    Reference,
    TextAttribute,
    Unique,
    casefolded,
)
from dynamo.auth import AbstractGroup, AbstractUser
from dynamo.client.plain import PlainModel


class Plan(TextChoices):
    FREE = "free", "Free of charge"
    PAID = "paid", "Paid monthly"


def now() -> datetime:
    return datetime.now(UTC)


class Customer(Model):
    class Meta:
        table_name = "tests-customers"

    email = TextAttribute("email address", max_length=100, validators=[validate_email])
    club = TextAttribute()
    card = TextAttribute(null=True, help_text="On the back.")
    plan = TextAttribute(choices=Plan, default=Plan.FREE)
    visits = IntegerAttribute(default=0)
    balance = DecimalAttribute(null=True, max_digits=40, decimal_places=2)
    is_known = BooleanAttribute(default=False)
    wants_mail = BooleanAttribute(null=True)
    born = DateAttribute(null=True)
    called = DateTimeAttribute("called at", null=True)
    details = JSONAttribute(null=True)
    notes = TextAttribute(default="")
    region = TextAttribute(null=True)
    tags: Any = UnicodeSetAttribute(null=True)
    joined = DateTimeAttribute(default=now, editable=False)

    class ByClub(GlobalSecondaryIndex["Customer"]):
        club = TextAttribute(hash_key=True)
        joined = DateTimeAttribute(range_key=True)

    by_club = ByClub()

    class ByRegion(GlobalSecondaryIndex["Customer"]):
        region = TextAttribute(hash_key=True)

    by_region = ByRegion()

    unique_email = Unique("email", normalize=casefolded)
    unique_card = Unique("club", "card")

    def get_absolute_url(self) -> str:
        return f"/customers/{self.pk}/"


class Booking(Model):
    class Meta:
        table_name = "tests-desk-bookings"

    customer = Reference(Customer)
    payer = Reference("Customer", null=True)
    locker = Reference("Shelf", null=True)


class Shelf(Model):
    """Without pages in the admin."""

    class Meta:
        table_name = "tests-desk-shelves"


class Seat(Model):
    class Meta:
        table_name = "tests-desk-seats"
        guard_table = "tests-desk-seats-guards"
        verbose_name = "seat"

    hall = TextAttribute(hash_key=True)
    row = IntegerAttribute(range_key=True)
    guest = TextAttribute(null=True)


class Badge(Model):
    """Guard items stand beside the items, under keys that people type."""

    class Meta:
        table_name = "tests-desk-badges"

    code = TextAttribute(hash_key=True)
    email = TextAttribute(null=True)

    unique_email = Unique("email")


class Chair(Model):
    """Without a table for guard items."""

    class Meta:
        table_name = "tests-chairs"

    hall = TextAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)


class Team(AbstractGroup):
    class Meta:
        table_name = "tests-desk-teams"


class Clerk(AbstractUser):
    """The users of the admin."""

    class Meta:
        table_name = "tests-desk-clerks"

    group_model = Team
    pin = TextAttribute(null=True, sensitive=True)


class Shift(PlainModel):
    """The items of clerks as another model."""

    class Meta:
        table_name = "tests-desk-clerks"

    pk = TextAttribute(hash_key=True)
    pin = TextAttribute(null=True)


class Locker(Model):
    """A key of two parts that are not texts, and values that forms cannot edit."""

    class Meta:
        table_name = "tests-desk-lockers"
        guard_table = "tests-desk-lockers-guards"

    floor = DecimalAttribute(hash_key=True)
    code = BinaryAttribute(legacy_encoding=False, range_key=True)
    owner = TextAttribute(null=True)
    size = NumberAttribute(null=True)
    marks: Any = NumberSetAttribute(null=True)
    parts: Any = ListAttribute(null=True)
    labels: Any = MapAttribute(null=True)
    picture = BinaryAttribute(legacy_encoding=False, null=True)

    unique_owner = Unique("owner", searchable=True)
