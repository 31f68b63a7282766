"""The kinds of values on an invoice: how a value is typed, checked and stored."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext_lazy as _, ngettext_lazy

from invoices.document.fonts import as_shown, missing_characters, packages_for
from invoices.document.numbers import NUMBER_MAX_LENGTH, readings, with_another_decimal
from web import kinds
from web.kinds import Kind

#: The years that an invoice may be issued in. Where all series of an account are needed, each of
#: these years is read.
YEARS = range(1970, 2100)

_NUMBER = re.compile(r"[+-]?(?=\.?\d)0*(\d*)\.?(\d*?)0*", re.ASCII)
_WRONG_NUMBER = {
    "invalid": _("Enter a number such as 12.50."),
    "max_digits": _("Use at most %(limit)s digits before the decimal point."),
    "max_decimals": _("Use at most %(limit)s digits after the decimal point."),
    "zero": _("Enter a number other than 0."),
    "bounds": _("Enter a number from %(first)s to %(last)s."),
    "ambiguous": _("Enter %(whole)s or %(decimal)s: “%(text)s” can be either."),
}

# `date.fromisoformat` also takes 20261121 and 2026-W48-1.
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

# Printable characters that show nothing: the fonts have them without a glyph, or, U+FFFC, they
# stand for an object.
_INVISIBLE = dict.fromkeys(map(ord, "\u034f\u200c\u200d\u200e\u200f\u2060\u2800\ufffc"))
# How many of the characters that cannot be printed an error names.
_NAMED_CHARACTERS = 5


def check_printable(text: str) -> None:
    """Reject characters that the fonts of the PDF do not have.

    The error shows them, and names the font packages that the operator can install for them.
    """
    missing = missing_characters(text)
    if not missing:
        return
    error = ngettext_lazy(
        "This character cannot be printed: %(characters)s. Remove or replace it.",
        "These characters cannot be printed: %(characters)s. Remove or replace them.",
        len(missing),
    )
    named = ", ".join(map(as_shown, missing[:_NAMED_CHARACTERS]))
    errors = [ValidationError(error, "missing_character", {"characters": named})]
    if packages := packages_for(missing):
        hint = _("The operator of this site can add fonts for them: %(packages)s.")
        errors.append(ValidationError(hint, "missing_font", {"packages": ", ".join(packages)}))
    raise ValidationError(errors)


def printable(text: str) -> str:
    """`text`, if the fonts of the PDF have its characters."""
    check_printable(text)
    return text


#: One line of text, and text of any number of lines. The fonts of the PDF must have the characters.
SingleLine = partial(kinds.SingleLine, rule=printable)
MultiLine = partial(kinds.MultiLine, rule=printable)


@dataclass(frozen=True)
class Number(Kind):
    """A decimal number with at most so many digits before and after the point.

    A text input, because the decimal keypad of a phone lacks the minus sign and, in many
    countries, the point.
    """

    wire_type = "N"
    before: int
    after: int
    bounds: tuple[int, int] | None = None
    may_be_zero: bool = True
    is_percentage: bool = False
    #: Whether `1,080` can only be a thousand and eighty, as a price in a currency without decimals.
    #: `1.080` can be either.
    is_grouped: bool = False

    def read(self, typed: str) -> Decimal:
        """The number of a text such as `1.234,50`; see `invoices.document.numbers`.

        Raises:
            ValidationError: also if the text has two readings and both are allowed. The error shows
                them, so that one of them can be typed.
        """
        text = typed.strip()
        if self.is_percentage:
            text = text.rstrip("%\N{FULLWIDTH PERCENT SIGN}")
        found = readings(text)
        allowed = self._allowed(found)
        if self.is_grouped and not {".", "\N{FULLWIDTH FULL STOP}"} & set(text):
            allowed = allowed[-1:]
        if len(allowed) > 1:
            decimal, whole = with_another_decimal(allowed[0]), allowed[1]
            raise _wrong("ambiguous", whole=whole, decimal=decimal, text=text)
        return self.clean((allowed or found or [typed])[0])

    def to_typed(self, value: Decimal) -> str:
        text = self.to_text(value)
        return text if len(self._allowed(readings(text))) < 2 else with_another_decimal(text)

    def _allowed(self, plain: list[str]) -> list[str]:
        """Those of the numbers that `clean` accepts."""
        allowed = []
        for text in plain:
            with suppress(ValidationError):
                self.clean(text)
                allowed.append(text)
        return allowed

    def clean(self, typed: str) -> Decimal:
        """The number of a text with a decimal point and without groups, as in a program."""
        typed = typed.strip()
        match = _NUMBER.fullmatch(typed) if len(typed) <= NUMBER_MAX_LENGTH else None
        if not match:
            raise _wrong("invalid")
        if len(match[1]) > self.before:
            raise _wrong("max_digits", limit=self.before)
        if len(match[2]) > self.after:
            raise _wrong("max_decimals", limit=self.after)
        number = Decimal(typed)
        if not number and not self.may_be_zero:
            raise _wrong("zero")
        if self.bounds and not self.bounds[0] <= number <= self.bounds[1]:
            raise _wrong("bounds", first=self.bounds[0], last=self.bounds[1])
        return number or Decimal(0)  # not minus zero

    def to_text(self, value: Decimal) -> str:
        """The number without trailing zeros and without an exponent."""
        # `normalize` would round to the 28 digits of the context.
        whole, point, decimals = f"{value:f}".partition(".")
        text = whole + (point + decimals).rstrip("0").rstrip(".")
        return "0" if text == "-0" else text

    def from_text(self, text: str) -> Decimal:
        return Decimal(text)


def _wrong(code: str, **values: object) -> ValidationError:
    return ValidationError(_WRONG_NUMBER[code], code, values)


class Amount(Kind):
    """An amount in minor units. People do not type it."""

    wire_type = "N"

    def from_text(self, text: str) -> int:
        return int(text)


class Flag(Kind):
    """Yes or no; a checkbox."""

    def to_text(self, value: bool) -> str:
        return "yes" if value else ""

    def from_text(self, text: str) -> bool:
        return text == "yes"


def _email(text: str) -> str:
    validate_email(text)
    return text


EMAIL = kinds.SingleLine(254, _email, input=forms.EmailInput)


class Day(Kind):
    """A date in one of `YEARS`."""

    def clean(self, typed: str) -> date:
        try:
            if not _DATE.fullmatch(typed.strip()):
                raise ValueError(typed)
            day = date.fromisoformat(typed.strip())
        except ValueError as error:
            raise ValidationError(_("Enter a date such as 2026-11-21."), code="invalid") from error
        if day.year not in YEARS:
            limits = {"first": YEARS[0], "last": YEARS[-1]}
            raise ValidationError(_("Enter a year from %(first)s to %(last)s."), "year", limits)
        return day

    def from_text(self, text: str) -> date:
        return date.fromisoformat(text)

    def widget(self) -> forms.Widget:
        return forms.DateInput({"type": "date"})


class Moment(Kind):
    """A time with its zone. People do not type it."""

    def to_text(self, value: datetime) -> str:
        return value.isoformat()

    def from_text(self, text: str) -> datetime:
        return datetime.fromisoformat(text)


def is_blank(text: str) -> bool:
    """Whether nothing of `text` is visible on a page or a PDF."""
    return not text.translate(_INVISIBLE).strip()
