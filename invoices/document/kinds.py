"""The kinds of values on an invoice: how a value is typed, checked and stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from functools import cache

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

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
_EXACT = Context(prec=2 * NUMBER_MAX_LENGTH)

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


@dataclass(frozen=True)
class SingleLine(kinds.SingleLine):
    """One line of text. The fonts of the PDF must have its characters."""

    rule: Callable[[str], str] = printable


@dataclass(frozen=True)
class MultiLine(kinds.MultiLine):
    """Text of any number of lines. The fonts of the PDF must have its characters."""

    rule: Callable[[str], str] = printable


@dataclass(frozen=True)
class Number(Kind):
    """A decimal number with at most so many digits before and after the point.

    A text input, because the decimal keypad of a phone lacks the minus sign and, in many
    countries, the point.
    """

    python_type = Decimal
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
            decimal, whole = allowed
            raise ValidationError(
                _("Enter %(whole)s or %(decimal)s: “%(text)s” can be either."),
                "ambiguous",
                {"whole": whole, "decimal": with_another_decimal(decimal), "text": text},
            )
        return self.clean((allowed or found or [typed])[0])

    def to_typed(self, value: Decimal) -> str:
        text = self.to_text(value)
        return text if len(self._allowed(readings(text))) < 2 else with_another_decimal(text)

    def _allowed(self, plain: list[str]) -> list[str]:
        """Those of the numbers that `check` accepts."""
        allowed = []
        for text in plain:
            with suppress(ValidationError):
                self.check(Decimal(text))
                allowed.append(text)
        return allowed

    def clean(self, typed: str) -> Decimal:
        """The number of a text with a decimal point and without groups, as in a program."""
        typed = typed.strip()
        is_plain = len(typed) <= NUMBER_MAX_LENGTH and _NUMBER.fullmatch(typed)
        number = Decimal(typed if is_plain else "NaN")
        self.check(number)
        return number or Decimal(0)  # not minus zero

    def check(self, value: Decimal) -> None:
        if not value.is_finite():
            raise ValidationError(_("Enter a number such as 12.50."), code="invalid")
        # The size comes first: written out, 1E+999999999 has that many digits.
        if value.adjusted() >= self.before:
            raise ValidationError(
                _("Use at most %(limit)s digits before the decimal point."),
                "max_digits",
                {"limit": self.before},
            )
        is_tiny = value.adjusted() < -self.after
        if value and (is_tiny or value != value.quantize(_unit(self.after), context=_EXACT)):
            raise ValidationError(
                _("Use at most %(limit)s digits after the decimal point."),
                "max_decimals",
                {"limit": self.after},
            )
        if not value and not self.may_be_zero:
            raise ValidationError(_("Enter a number other than 0."), code="zero")
        if self.bounds and not self.bounds[0] <= value <= self.bounds[1]:
            raise ValidationError(
                _("Enter a number from %(first)s to %(last)s."),
                "bounds",
                {"first": self.bounds[0], "last": self.bounds[1]},
            )

    def to_text(self, value: Decimal) -> str:
        """The number without trailing zeros and without an exponent."""
        # `normalize` would round to the 28 digits of the context.
        whole, point, decimals = f"{value:f}".partition(".")
        text = whole + (point + decimals).rstrip("0").rstrip(".")
        return "0" if text == "-0" else text

    def from_text(self, text: str) -> Decimal:
        return Decimal(text)


class Amount(Kind):
    """An amount in minor units. People do not type it."""

    python_type = int
    wire_type = "N"

    def from_text(self, text: str) -> int:
        return int(text)


class Flag(Kind):
    """Yes or no; a checkbox."""

    python_type = bool

    def to_text(self, value: bool) -> str:
        return "yes" if value else ""

    def from_text(self, text: str) -> bool:
        return text == "yes"


class Email(Kind):
    """An email address."""

    python_type = str

    def clean(self, typed: str) -> str:
        address = typed.strip()
        self.check(address)
        return address

    def check(self, value: str) -> None:
        validate_email(value)

    def widget(self) -> forms.Widget:
        return forms.EmailInput({"maxlength": 254})


class Day(Kind):
    """A date in one of `YEARS`."""

    python_type = date

    def clean(self, typed: str) -> date:
        try:
            if not _DATE.fullmatch(typed.strip()):
                raise ValueError(typed)
            day = date.fromisoformat(typed.strip())
        except ValueError as error:
            raise ValidationError(_("Enter a date such as 2026-11-21."), code="invalid") from error
        self.check(day)
        return day

    def check(self, value: date) -> None:
        # A datetime is a date, too, but would be stored with its time.
        if isinstance(value, datetime):
            raise ValidationError("Use a date without a time.", code="invalid")
        if value.year not in YEARS:
            raise ValidationError(
                _("Enter a year from %(first)s to %(last)s."),
                "year",
                {"first": YEARS[0], "last": YEARS[-1]},
            )

    def from_text(self, text: str) -> date:
        return date.fromisoformat(text)

    def widget(self) -> forms.Widget:
        return forms.DateInput({"type": "date"})


class Moment(Kind):
    """A time with its zone. People do not type it."""

    python_type = datetime

    def to_text(self, value: datetime) -> str:
        return value.isoformat()

    def from_text(self, text: str) -> datetime:
        return datetime.fromisoformat(text)


def is_blank(text: str) -> bool:
    """Whether nothing of `text` is visible on a page or a PDF."""
    return not text.translate(_INVISIBLE).strip()


@cache
def _unit(decimals: int) -> Decimal:
    return Decimal(1).scaleb(-decimals)
