"""Issuing an invoice: a draft gets the next number of the account's year."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from dynamo.extending import Write, read_together
from invoices.document.amounts import Line, check_line, check_line_count, check_totals
from invoices.document.fields import Field, fields_of
from invoices.document.invoice import (
    CREDIT_PREFIX,
    DEFAULT_LANGUAGE,
    Customer,
    Draft,
    Invoice,
    Party,
    Seller,
    check_dates,
    draw_up,
    label_of,
    series_of,
)
from invoices.document.kinds import Day, check_printable
from invoices.exceptions import DateTooEarly, InvoiceRequestReused
from invoices.models import InvoiceItem
from invoices.store.items import from_item, to_item
from sequences import DamagedSeries, OutOfOrder, RequestIdReused, issue
from sequences.extending import REQUEST_PREFIX
from web.kinds import SingleLine


def _not_reserved(request_id: str) -> str:
    if request_id.startswith(CREDIT_PREFIX):
        raise ValidationError(
            f"Must not begin with {CREDIT_PREFIX}: request ids of credit notes do.", "reserved"
        )
    return request_id


#: A request id that a caller may choose.
REQUEST_ID = Field("request_id", SingleLine(100, _not_reserved))
ISSUE_DATE = Field("issue_date", Day(), default=None)

_YEAR = re.compile(r"\d{4}", re.ASCII)
# The usual tags of RFC 5646: a language, then parts such as script and region.
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}")


def issue_invoice(
    draft: Draft,
    *,
    account: str,
    seller: Seller,
    request_id: str | uuid.UUID | None = None,
    language: str = DEFAULT_LANGUAGE,
    time_zone: str | None = None,
    also: Sequence[Write] = (),
) -> Invoice:
    """Give `draft` the next number of the account's year and store it as an invoice.

    `request_id` names this invoice within the account (a random one if none is given): a later
    call with the same id and contents returns the stored invoice. The seller and `language`, the
    language of the PDF (a tag such as `pt-BR`), are not contents in this sense. A draft without a
    date is dated today in `time_zone`; see `today`. For `also` see `sequences.issue`.

    `account` is any text without `#`, except `requestId`. The draft is checked. Forms and commands
    check more of what people type, such as its length, and then call `issue_checked`.

    Costs 1 request and 6 write units for an invoice of up to 1 KB; see `sequences.issue`.

    Raises:
        InvoiceRequestReused: the request id issued an invoice with other contents.
        DateTooEarly: the series already has a later date.
        ItemTooLarge, DamagedSeries, Unavailable: see `sequences.issue`.
        ValueError: an argument is not allowed; nothing was sent.
    """
    request_id = str(uuid.uuid4()) if request_id is None else _clean_request_id(request_id)
    _check_account(account)
    _check_party("The seller", Seller, seller)
    _check_type("The language", str, language)
    if not _LANGUAGE.fullmatch(language):
        raise ValueError(f"The language must be a tag such as en or pt-BR, not {language!r}.")
    _check_draft(draft)
    return issue_checked(draft, account, seller, request_id, language, time_zone, also)


def issue_checked(
    draft: Draft,
    account: str,
    seller: Seller,
    request_id: str,
    language: str,
    time_zone: str | None,
    also: Sequence[Write] = (),
) -> Invoice:
    """As `issue_invoice`, of contents that were checked before: clean, or those of an invoice.

    The contents of an invoice of last year may not be allowed any more, such as its currency.
    """
    while True:
        day = today(time_zone)
        invoice = draw_up(draft, account, seller, day, request_id, language)
        _check("The lines", check_totals, invoice.totals)
        item = InvoiceItem.prepared(invoice.series, to_item(invoice), draft.digest())
        try:
            _check("The dates", lambda issued_at: check_dates(draft, issued_at), invoice.issued_at)
        except ValueError:
            # It was due on the day it was issued, and midnight has passed since.
            if earlier := _issued_before(item, request_id):
                return earlier
            raise
        try:
            issued = issue(item, series=invoice.series, request_id=request_id, also=also)
        except RequestIdReused as error:
            raise _request_id_reused(error, invoice.series) from error
        except OutOfOrder as error:
            # Midnight may have passed since `today` was asked.
            if not draft.issued_on and day != today(time_zone):
                continue
            raise DateTooEarly(invoice.issued_at, date.fromisoformat(error.last)) from error
        return from_item(issued.stored)


def _issued_before(item: InvoiceItem, request_id: str) -> Invoice | None:
    """The invoice that the same request has issued. Costs 1 request, and 1 more if there is one."""
    guard_key = InvoiceItem.guard_key(item.series, request_id)
    [guard] = read_together([InvoiceItem.at(guard_key, 0)])
    place = InvoiceItem.place_of(guard) if guard else None
    if guard is None or place is None or guard.get("digest") != {"S": item.digest()}:
        return None
    [stored] = read_together([InvoiceItem.at(*place)])
    return from_item(stored) if stored else None


def today(time_zone: str | None = None) -> date:
    """The current day in `time_zone` (`Europe/Berlin`), by default in that of the settings.

    Another zone that a page has activated does not matter.
    """
    zone = ZoneInfo(time_zone) if time_zone else timezone.get_default_timezone()
    # Without USE_TZ, `localdate` rejects Django's own time, which has no zone.
    return timezone.localdate(timezone=zone) if settings.USE_TZ else datetime.now(zone).date()


def _request_id_reused(error: RequestIdReused, series: str) -> Exception:
    year = error.series.rpartition("#")[2]
    if not _YEAR.fullmatch(year):
        # The guard item of the request id was damaged and does not name an invoice.
        return DamagedSeries(series)
    return InvoiceRequestReused(error.request_id, label_of(int(year), error.number))


# Who issues --------------------------------------------------------------------------------------


def seller_of(user: User) -> Seller:
    """The seller, as the profile of `user` has it now."""
    values = {each.name: getattr(user, each.name, None) or "" for each in fields_of(Seller)}
    name = user.business_name or user.full_name or user.get_username()
    return Seller(**values | {"name": name, "address": user.business_address or ""})


def is_named(user: User) -> bool:
    """Whether the profile has a name that can stand on an invoice; a username is not one."""
    return bool(user.business_name or user.full_name)


def must_confirm(user: User) -> bool:
    """Whether the user must confirm the email address before issuing."""
    return bool(settings.ACCOUNTS_REQUIRE_CONFIRMED_EMAIL and not user.is_confirmed)


def check_may_issue(user: User) -> None:
    """Raises ValidationError if the user must confirm the email address first."""
    if must_confirm(user):
        raise ValidationError(
            _("Confirm your email address first. Open your profile to get the link."),
            "unconfirmed",
        )


def check_seller(seller: Seller) -> None:
    """Raises ValidationError if the seller cannot be printed. The profile does not check it."""
    try:
        for each in fields_of(Seller):
            check_printable(getattr(seller, each.name))
    except ValidationError as error:
        raise ValidationError(
            _("Change your profile first. %(problem)s"),
            "seller",
            {"problem": " ".join(error.messages)},
        ) from error


# The arguments of `issue_invoice` ----------------------------------------------------------------


def _clean_request_id(request_id: str | uuid.UUID) -> str:
    text = str(request_id) if isinstance(request_id, uuid.UUID) else request_id
    _check_type("The request id", str, text)
    cleaned: str = _check("The request id", REQUEST_ID.clean, text)
    return cleaned


def _check_account(account: object) -> None:
    """Reject an account that could share keys with another one, or with a request id."""
    if not isinstance(account, str) or not account or "#" in account:
        raise ValueError(f"The account must be a text without #, and not empty: {account!r}.")
    if series_of(account, 0).startswith(REQUEST_PREFIX):
        raise ValueError(f"The account must not be {account!r}: keys of guard items begin with it.")


def _check_draft(draft: Draft) -> None:
    """Costs about 10 µs per line."""
    _check_party("The customer", Customer, draft.customer)
    _check_fields("The ", draft)
    if draft.credits or draft.credit_reason:
        raise ValueError("Credit notes are issued by invoices.store.settlement.")
    _check("The issue date", ISSUE_DATE.check, draft.issued_on)
    _check_type("The lines", Sequence, draft.lines)
    _check("The lines", check_line_count, draft.lines)
    for number, line in enumerate(draft.lines, 1):
        _check_type(f"Line {number}", Line, line)
        _check_fields(f"Line {number}, ", line)
        _check(f"Line {number}", check_line, line)


def _check_party(role: str, expected: type[Party], party: Party) -> None:
    _check_type(role, expected, party)
    _check_fields(f"{role}'s ", party)


def _check_fields(prefix: str, part: Draft | Line | Party) -> None:
    for each in fields_of(type(part)):
        try:
            each.check(getattr(part, each.name))
        except ValidationError as error:
            raise ValueError(f"{prefix}{each.words}: {' '.join(error.messages)}") from error


def _check_type(about: str, expected: type, value: object) -> None:
    if not isinstance(value, expected):
        raise ValueError(f"{about}: must be a {expected.__name__}, not {value!r}.")


def _check(about: str, rule: Any, value: object) -> Any:
    try:
        return rule(value)
    except ValidationError as error:
        raise ValueError(f"{about}: {' '.join(error.messages)}") from error
