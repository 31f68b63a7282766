"""Issuing an invoice: a draft gets the next number of the account's year."""

import re
import uuid
from collections.abc import Sequence
from datetime import date, timedelta, tzinfo
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import AbstractAccount
from dynamo import Transaction
from dynamo.client.writes import Write
from dynamo.inputs import SingleLine
from dynamo.transactions import read_together
from dynamo.wire.types import Item
from invoices.document.invoice import (
    CREDIT_PREFIX,
    DEFAULT_LANGUAGE,
    Draft,
    Invoice,
    Seller,
    check_dates,
    draw_up,
    label_of,
    parse_label,
    series_of,
)
from invoices.exceptions import DateTooEarly, DateTooLate, InvoiceRequestReused
from invoices.models import InvoiceItem
from invoices.store.records import find_invoice, from_item, label_of_guard, to_item
from sequences import DamagedSeries, OutOfOrder, RequestIdReused, issue, start_series


def _not_reserved(request_id: str) -> str:
    if request_id.startswith(CREDIT_PREFIX):
        raise ValidationError(
            f"Must not begin with {CREDIT_PREFIX}: request ids of credit notes do.", "reserved"
        )
    return request_id


#: A request id that a caller may choose.
REQUEST_ID = SingleLine(max_length=100, rule=_not_reserved)


def issue_invoice(
    draft: Draft,
    *,
    account: str,
    seller: Seller,
    request_id: str | None = None,
    language: str = DEFAULT_LANGUAGE,
    time_zone: str | None = None,
    force_date: bool = False,
    also: Sequence[Write] = (),
) -> Invoice:
    """Give `draft` the next number of the account's year and store it as an invoice.

    The values of `draft` and `seller` are clean (`clean`, `check_line`, `check_totals`), or
    those of an issued invoice: they are not checked again. `request_id` names this invoice within
    the account (a random one if none is given): a later call with the same id and contents returns
    the stored invoice. The seller and `language`, the language of the PDF (a tag such as `pt-BR`),
    are not contents in this sense. A draft without a date is dated today in `time_zone`; see
    `today`. `force_date` allows any later date. For `also` see `sequences.issue`.

    Costs 1 request and 6 write units for an invoice of up to 1 KB; see `sequences.issue`.

    Raises:
        InvoiceRequestReused: the request id issued an invoice with other contents.
        DateTooEarly: the series already has a later date.
        DateTooLate: the date is after tomorrow, without `force_date`; nothing was issued.
        ValidationError: see `check_dates`; nothing was issued.
        ItemTooLarge, DamagedSeries, Unavailable: see `sequences.issue`.
    """
    request_id = request_id or str(uuid.uuid4())
    while True:
        day = today(time_zone)
        if draft.issued_on and draft.issued_on > day + timedelta(days=1) and not force_date:
            raise DateTooLate(draft.issued_on)
        invoice = draw_up(draft, account, seller, day, request_id, language)
        item = InvoiceItem.prepared(invoice.series, to_item(invoice), draft.digest())
        try:
            check_dates(draft, invoice.issued_at)
        except ValidationError:
            # The invoice was due on the day of issue, and midnight has passed since.
            guard = _guard_of(account, request_id)
            if guard.get("digest") != {"S": item.digest()}:
                raise
            return find_invoice(account, label_of_guard(guard))
        try:
            issued = issue(item, series=invoice.series, request_id=request_id, also=also)
        except RequestIdReused as error:
            year = error.series.rpartition("#")[2]
            if not re.fullmatch("[0-9]{4}", year):
                # The guard item of the request id was damaged and does not name an invoice.
                raise DamagedSeries(invoice.series) from error
            label = label_of(int(year), error.number)
            raise InvoiceRequestReused(error.request_id, label) from error
        except OutOfOrder as error:
            # Midnight may have passed since `today` was computed.
            if not draft.issued_on and day != today(time_zone):
                continue
            raise DateTooEarly(invoice.issued_at, date.fromisoformat(error.last)) from error
        return from_item(issued.stored)


def start_numbers(account: str, label: str, *, write: Transaction | None = None) -> None:
    """Let the first invoice of a year have the number `label`, such as `2026-001001`.

    This is for an account that numbered earlier invoices of the year in another system. Costs as
    much as `sequences.start_series`.

    Raises:
        SeriesStarted: there are invoices of the year, or they begin at another number.
        UnknownInvoice: `label` is not a number of an invoice.
    """
    year, number = parse_label(label)
    start_series(InvoiceItem, series_of(account, year), at=number, write=write)


def label_issued_with(request_id: str, account: str) -> str | None:
    """The number of the invoice that `account` has issued with this request id. Costs 1 read."""
    return label_of_guard(_guard_of(account, request_id)) or None


def _guard_of(account: str, request_id: str) -> Item:
    """The stored guard item of a request id; empty if there is none. Costs 1 request."""
    # The key is the same in all years.
    key = InvoiceItem.guard_key(series_of(account, 0), request_id)
    return read_together([InvoiceItem(key, 0)])[0] or {}


def zone_of(name: str | None) -> tzinfo:
    """The time zone with this name (`Europe/Berlin`), by default that of the settings."""
    return ZoneInfo(name) if name else timezone.get_default_timezone()


def today(time_zone: str | None = None) -> date:
    """The current day in `time_zone` (`Europe/Berlin`), by default in that of the settings.

    Another zone that a page has activated does not matter.
    """
    return timezone.localdate(timezone=zone_of(time_zone))


# Who issues --------------------------------------------------------------------------------------


def must_confirm(user: AbstractAccount) -> bool:
    """Whether the user must confirm the email address before issuing."""
    return bool(settings.INVOICES_REQUIRE_CONFIRMED_EMAIL and not user.is_confirmed)


def check_confirmed(user: AbstractAccount) -> None:
    """Raises ValidationError if the user has not confirmed the email address."""
    if not user.is_confirmed:
        raise ValidationError(
            _("Confirm your email address first. Open your profile to get the link."), "unconfirmed"
        )


def check_may_issue(user: AbstractAccount) -> None:
    """Raises ValidationError if the user must confirm the email address first."""
    if must_confirm(user):
        check_confirmed(user)
