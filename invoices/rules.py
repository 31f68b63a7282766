"""The rules for what a person may put on an invoice; forms and commands use them alike.

`clean_…` takes what was typed and returns what is stored, or raises ValidationError.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import date
from decimal import Context, Decimal
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from invoices.amounts import Line, Totals, totals
from invoices.documents import DEFAULT_LANGUAGE, Party
from invoices.fonts import missing_characters
from invoices.money import is_currency
from invoices.years import YEARS

DESCRIPTION_MAX_LENGTH = 1000
NAME_MAX_LENGTH = 200
ADDRESS_MAX_LENGTH = 500
NOTE_MAX_LENGTH = 1000
REASON_MAX_LENGTH = 500
REASON_MAX_BYTES = 4 * REASON_MAX_LENGTH
REQUEST_ID_MAX_LENGTH = 100
MAX_LINES = 200

#: Digits before the point, and behind it.
QUANTITY_DIGITS = (9, 6)
UNIT_PRICE_DIGITS = (12, 6)
VAT_RATE_DIGITS = (3, 3)
VAT_RATE_MAX = 100

#: In minor units. Below 2^53, so that programs whose numbers are floats read it exactly.
GROSS_MAX = 10**15

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
# More than any number may have; longer ones are not even read.
_DECIMAL_MAX_LENGTH = 40
_EXACT = Context(prec=2 * _DECIMAL_MAX_LENGTH)

# `date.fromisoformat` also takes 20261121 and 2026-W48-1.
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

_DIRECTION_OVERRIDES = re.compile("[\u202a-\u202e\u2066-\u2069]")
# Control characters, lone surrogates, line and paragraph separators.
_UNPRINTABLE_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
# Printable all the same: fonts have them, and draw nothing (or, U+FFFC, stand for nothing).
_UNSEEN = dict.fromkeys(map(ord, "\u034f\u200e\u2060\u2800\ufffc"))
# Of the characters that cannot be printed so many are named.
_NAMED_CHARACTERS = 5


def clean_description(text: str) -> str:
    """What a line is for: one line of text."""
    return _one_line(text, DESCRIPTION_MAX_LENGTH)


def clean_customer_name(text: str) -> str:
    """Who buys: one line of text."""
    return _one_line(text, NAME_MAX_LENGTH)


def clean_address(text: str) -> str:
    """A postal address of any lines, or nothing."""
    return _lines(text, ADDRESS_MAX_LENGTH)


def clean_note(text: str) -> str:
    """Free text of any lines, or nothing."""
    return _lines(text, NOTE_MAX_LENGTH)


def clean_reason(text: str) -> str:
    """Why an invoice is voided: one line of text."""
    return _one_line(text, REASON_MAX_LENGTH)


def clean_request_id(text: str) -> str:
    """The name that a caller gives to its request; kept as it is, but for spaces around it."""
    name = check_filled(text)
    _limit_length(name, REQUEST_ID_MAX_LENGTH)
    _refuse_unprintable(name)
    return name


def clean_quantity(number: str | Decimal) -> Decimal:
    """How many: not zero; negative takes back."""
    quantity = _decimal(number, QUANTITY_DIGITS)
    if not quantity:
        raise ValidationError(_("The quantity cannot be 0."), code="zero")
    return quantity


def clean_unit_price(number: str | Decimal) -> Decimal:
    """What one costs, net; zero gives it away, negative takes off."""
    return _decimal(number, UNIT_PRICE_DIGITS)


def clean_vat_rate(number: str | Decimal) -> Decimal:
    """The rate of VAT, in percent, from 0 to 100."""
    rate = _decimal(number, VAT_RATE_DIGITS)
    if not 0 <= rate <= VAT_RATE_MAX:
        raise ValidationError(_("The VAT rate is from 0 to 100 percent."), code="vat_rate")
    return rate


def clean_currency(code: str) -> str:
    """The ISO 4217 code of a currency in use, in capitals."""
    currency = code.strip().upper()
    check_currency(currency)
    return currency


def check_currency(code: str) -> None:
    """Refuse what is not the code of a currency in use, as it is stored."""
    if not is_currency(code):
        raise ValidationError(_("That is no currency in use, such as EUR."), code="currency")


def clean_issue_date(text: str) -> date:
    """A date as 2026-11-21, in one of the years that `invoices.years` names."""
    try:
        if not _DATE.fullmatch(text.strip()):
            raise ValueError(text)
        day = date.fromisoformat(text.strip())
    except ValueError as error:
        raise ValidationError(_("Enter a date such as 2026-11-21."), code="invalid") from error
    check_year(day)
    return day


def check_year(day: date) -> None:
    """Refuse a date of a year that `invoices.years` does not name: nobody would look there."""
    if day.year not in YEARS:
        raise ValidationError(
            _("The year is from %(first)s to %(last)s."),
            "year",
            {"first": YEARS[0], "last": YEARS[-1]},
        )


def clean_lines(lines: Sequence[Line], currency: str) -> tuple[Line, ...]:
    """Lines that are clean each, as an invoice takes them together: how many, and their sum."""
    check_line_count(lines)
    check_totals(totals(lines, currency))
    return tuple(lines)


def check_line_count(lines: Sequence[Line]) -> None:
    """Refuse an invoice without a line, or with too many."""
    if not lines:
        raise ValidationError(_("An invoice has at least one line."), code="no_lines")
    if len(lines) > MAX_LINES:
        raise ValidationError(
            _("An invoice has at most %(limit)s lines."), "max_lines", {"limit": MAX_LINES}
        )


def check_totals(sums: Totals) -> None:
    """Refuse sums that programs might not read exactly."""
    if max(abs(sums.net), abs(sums.vat), abs(sums.gross)) > GROSS_MAX:
        raise ValidationError(_("The invoice’s total is too large."), code="too_much")


def check_filled(text: str) -> str:
    """The text without the spaces around it; refused where nothing is left to see."""
    filled = text.strip()
    if is_blank(filled):
        raise ValidationError(_("This field is required."), code="required")
    return filled


def is_blank(text: str) -> bool:
    """Whether nobody would see anything of it on a page or a PDF."""
    return not text.translate(_UNSEEN).strip()


def seller_of(user: Any) -> Party:
    """Who sells, as the profile of `user` says it now."""
    return Party(
        name=user.business_name or user.full_name or user.get_username(),
        address=user.business_address or "",
        vat_id=user.vat_id or "",
    )


def language_of(user: Any) -> str:
    """The language of what `user` issues where no page says one: that of the profile."""
    language = getattr(user, "language", None)
    return language if language in dict(settings.LANGUAGES) else DEFAULT_LANGUAGE


def must_confirm(user: Any) -> bool:
    """Whether the site demands a confirmed address, and the account has none."""
    return bool(settings.ACCOUNTS_REQUIRE_CONFIRMED_EMAIL and not user.is_confirmed)


def check_may_issue(user: Any) -> None:
    """Refuse an account without a confirmed address, where the site demands one."""
    if must_confirm(user):
        raise ValidationError(
            _("Confirm your e-mail address first: your profile sends you the link."), "unconfirmed"
        )


def check_seller(seller: Party) -> None:
    """Refuse a seller whose name or address cannot be printed: the profile does not ask for it."""
    for text in (seller.name, seller.address, seller.vat_id):
        try:
            _refuse_missing(text)
        except ValidationError as error:
            raise ValidationError(
                _("Change your profile first. %(problem)s"),
                "seller",
                {"problem": " ".join(error.messages)},
            ) from error


def _one_line(text: str, limit: int) -> str:
    line = check_filled(text)
    _limit_length(line, limit)
    _refuse_unprintable(line)
    _refuse_missing(line)
    return line


def _lines(text: str, limit: int) -> str:
    lines = [line.rstrip() for line in text.strip().splitlines()]
    joined = "\n".join(lines)
    _limit_length(joined, limit)
    for line in lines:
        _refuse_unprintable(line)
    _refuse_missing(joined)
    return joined


def _limit_length(text: str, limit: int) -> None:
    if len(text) > limit:
        raise ValidationError(
            _("Use at most %(limit)s characters."), "max_length", {"limit": limit}
        )


def _refuse_unprintable(text: str) -> None:
    # What Python would print needs no second look; spaces of other scripts are fine as well.
    unprintable = not text.isprintable() and any(
        unicodedata.category(char) in _UNPRINTABLE_CATEGORIES for char in text
    )
    # Django puts the replacement character where the bytes that came were no UTF-8.
    if unprintable or _DIRECTION_OVERRIDES.search(text) or "\N{REPLACEMENT CHARACTER}" in text:
        raise ValidationError(_("Use printable characters only."), code="unprintable")


def _refuse_missing(text: str) -> None:
    """Refuse what the fonts of the PDF lack, by name: as code points, for one may be invisible."""
    missing = missing_characters(text)
    if missing:
        named = ", ".join(f"U+{ord(char):04X}" for char in missing[:_NAMED_CHARACTERS])
        raise ValidationError(
            ngettext_lazy(
                "An invoice cannot print this character: %(characters)s.",
                "An invoice cannot print these characters: %(characters)s.",
                len(missing),
            ),
            "missing_character",
            {"characters": named},
        )


def _decimal(number: str | Decimal, digits: tuple[int, int]) -> Decimal:
    """A number of at most so many digits before and behind the point, never minus zero."""
    before, behind = digits
    if isinstance(number, str):
        plain = len(number) <= _DECIMAL_MAX_LENGTH and _DECIMAL.fullmatch(number.strip())
        number = Decimal(number.strip() if plain else "NaN")
    if not number.is_finite():
        raise ValidationError(_("Enter a number such as 12.50."), code="invalid")
    # Judged by its size first: written out, 1E+999999999 has that many digits.
    if number.adjusted() >= before:
        raise ValidationError(
            _("Use at most %(limit)s digits before the point."), "max_digits", {"limit": before}
        )
    if number and (number.adjusted() < -behind or _has_decimals_behind(number, behind)):
        raise ValidationError(
            _("Use at most %(limit)s decimals."), "max_decimals", {"limit": behind}
        )
    return number or Decimal(0)


def _has_decimals_behind(number: Decimal, place: int) -> bool:
    """Whether it has decimals behind this place; idle zeros are none."""
    return number != number.quantize(_unit(place), context=_EXACT)


@cache
def _unit(place: int) -> Decimal:
    return Decimal(1).scaleb(-place)
