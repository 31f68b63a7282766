"""Invoices for tests, issued or written directly, and their stored items."""

import uuid
from collections import defaultdict
from datetime import date
from decimal import Decimal
from operator import itemgetter
from typing import Any

from django.core.exceptions import ValidationError

from accounts.models import User
from invoices.document.amounts import Line
from invoices.document.invoice import Customer, Draft, Invoice, Seller, series_of
from invoices.models import InvoiceItem, InvoiceState
from invoices.pages.seller import PaymentForm, SellerForm
from invoices.store.issuing import issue_invoice
from invoices.store.records import state_at
from invoices.store.sellers import open_profile, profile_of
from sequences.models import Counter
from tests import numbered
from tests.items import Item, put_item, scanned

DAY = date(2026, 3, 14)
SELLER = Seller("Ann & Söhne", "Main Street 1\n12345 Town", "DE123456789")


def sell_as(user: User, **typed: Any) -> None:
    """Give the seller `user` values, by its forms. Raises ValidationError."""
    for form_class in (SellerForm, PaymentForm):
        form: Any = form_class(typed, instance=open_profile(user, profile_of(user.pk)))
        if not form.is_valid():
            raise ValidationError(form.errors.as_data())
        form.save()


def new_account() -> str:
    """The primary key of a new account."""
    return str(uuid.uuid4())


def draft(
    customer: str | Customer = "Bob",
    *,
    day: date | None = DAY,
    description: str = "Work",
    **values: Any,
) -> Draft:
    """An invoice of one line of 100 EUR and 19 percent."""
    line = Line(description, Decimal(1), Decimal(100), Decimal(19))
    defaults = {
        "customer": Customer(customer) if isinstance(customer, str) else customer,
        "lines": (line,),
        "currency": "EUR",
        "issued_on": day,
    }
    return Draft(**(defaults | values))


def issued(
    account: str, *, request_id: str | None = None, language: str = "en", **values: Any
) -> Invoice:
    """An invoice of `account`, issued, also with a date that is still to come."""
    return issue_invoice(
        draft(**values),
        account=account,
        seller=SELLER,
        request_id=request_id,
        language=language,
        force_date=True,
    )


def series(account: str, year: int = DAY.year) -> str:
    """The account's series of a year."""
    return series_of(account, year)


def stored_numbers(account: str, year: int = DAY.year) -> list[int]:
    """The numbers that invoices of the series have."""
    return numbered.stored_numbers(InvoiceItem, series(account, year))


def stored_invoices(account: str, year: int = DAY.year) -> list[Item]:
    """Every invoice of the series as on the wire."""
    return numbered.stored_items(InvoiceItem, series(account, year))


def put_invoice(item: Item, **changes: Any) -> None:
    """Write an invoice's item directly, with other attributes."""
    numbered.put_item(InvoiceItem, item, **changes)


def put_state(account: str, label: str, **attributes: Any) -> None:
    """Write the state of an invoice directly; attributes as on the wire."""
    state = state_at(account, label)
    put_item(InvoiceState.table(), series=state.series, number=state.number, **attributes)


def put_sendings(account: str, label: str, sendings: dict[str, dict[str, str]]) -> None:
    """Write what the state of an invoice says of its mails, by their request ids, directly."""
    texts = {
        request_id: {"M": {name: {"S": text} for name, text in entry.items()}}
        for request_id, entry in sendings.items()
    }
    put_state(account, label, sendings={"M": texts})


def remove_invoice(key: str, number: str | int) -> None:
    """Delete an item of `invoices` directly."""
    numbered.remove_item(InvoiceItem, key, number)


def assert_whole(account: str, count: int, year: int = DAY.year) -> None:
    """The numbers are 1..count, each on one invoice, and the counter has `count`."""
    numbered.assert_whole(InvoiceItem, series(account, year), count)


def assert_invoices_whole() -> None:
    """The numbers of each series are 1..n, n is counted, dates rise, guards and invoices agree."""
    wanted: dict[str, tuple[str, int]] = {}
    guards, found = {}, defaultdict(list)
    for item in scanned(InvoiceItem.table()):
        series = item["series"]["S"]
        number = int(item["number"]["N"])
        if number:
            found[series].append((number, item["issuedAt"]["S"]))
            wanted[InvoiceItem.guard_key(series, item["requestId"]["S"])] = series, number
        else:
            guards[series] = InvoiceItem.place_of(item)
    assert guards == wanted
    prefix = InvoiceItem.counter_prefix()
    for counter in scanned(Counter.table()):
        if (name := counter["counterName"]["S"]).startswith(prefix):
            invoices = sorted(found.pop(name.removeprefix(prefix)))
            last = int(counter["currentValue"]["N"])
            assert [number for number, _day in invoices] == list(range(1, last + 1))
            assert invoices == sorted(invoices, key=itemgetter(1))
    assert not found
