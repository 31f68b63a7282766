"""The fields of an invoice: the kinds of their values, and their declarations.

A kind says how a value is typed, checked and stored.

`invoices.document.invoice` declares each field once, with its kind and what a form needs:

    note: str = field(MultiLine(1_000), _("Note"), default="")

The form, the command `issueinvoice`, the stored item, the digest, the JSON and the data of the PDF
follow from these declarations.
"""

import dataclasses
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext_lazy as _, ngettext_lazy

from dynamo.items.values import Item
from invoices.document.fonts import as_shown, missing_characters, packages_for
from invoices.document.money import NUMBER_MAX_LENGTH, plain_decimal, readings, with_another_decimal
from web import kinds
from web.kinds import FormField, Kind

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

# Printable characters that show nothing. The fonts have them without a glyph; U+FFFC stands for an
# object.
_INVISIBLE = dict.fromkeys(map(ord, "\u034f\u200c\u200d\u200e\u200f\u2060\u2800\ufffc"))
# How many characters an error names, of those that cannot be printed.
_NAMED_CHARACTERS = 5


def check_printable(text: str) -> str:
    """Return `text`. Raises ValidationError if the fonts of the PDF lack one of its characters.

    The error shows these, and names the font packages that the operator can install for them.
    """
    missing = missing_characters(text)
    if not missing:
        return text
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


#: One line of text, and text of any number of lines. The fonts of the PDF must have the characters.
SingleLine = partial(kinds.SingleLine, rule=check_printable)
MultiLine = partial(kinds.MultiLine, rule=check_printable)


@dataclass(frozen=True)
class Number(Kind):
    """A decimal number with at most `before` digits before the point and `after` digits after it.

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
        """The number of a text such as `1.234,50`; see `invoices.document.money`.

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
            decimal = with_another_decimal(allowed[0])
            whole = allowed[1]
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
        return plain_decimal(value)

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


# Declarations -------------------------------------------------------------------------------------

#: The default of a field that must have a value.
REQUIRED = object()


@dataclass(frozen=True)
class Field:
    """A field of an invoice, as declared. Without a `label`, people do not type it."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    label: Any = None
    help_text: Any = ""
    initial: str = ""

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @property
    def is_typed(self) -> bool:
        # A comparison, because a lazy text cannot be evaluated while modules are imported.
        return self.label is not None

    @property
    def words(self) -> str:
        """The name in English prose."""
        return self.name.replace("_", " ").replace("vat", "VAT")

    def stored_as(self, prefix: str = "") -> str:
        """Its name in the stored item and in JSON: `unit_price` is `unitPrice`."""
        first, *others = f"{prefix}_{self.name}".strip("_").split("_")
        return first + "".join(map(str.capitalize, others))

    def clean(self, typed: str) -> Any:
        """The value to store for what was typed for a command. Raises ValidationError."""
        return self._cleaned(typed, self.kind.clean)

    def read(self, typed: str) -> Any:
        """The value to store for what was typed into a form. Raises ValidationError."""
        return self._cleaned(typed, self.kind.read)

    def _cleaned(self, typed: str, clean: Callable[[str], Any]) -> Any:
        if typed.translate(_INVISIBLE).strip():
            return clean(typed)
        if self.is_required:
            raise ValidationError(_("This field is required."), code="required")
        return self.default

    def to_text(self, value: Any) -> str:
        """The value as stored; empty for None."""
        return "" if value is None else self.kind.to_text(value)

    def to_typed(self, value: Any) -> str:
        """The value as a person would type it into a form; empty for None."""
        return "" if value is None else self.kind.to_typed(value)

    def form_field(self) -> forms.Field:
        texts: Any = {"label": self.label, "help_text": self.help_text}
        if isinstance(self.kind, Flag):
            return forms.BooleanField(**texts, required=False)
        return FormField(
            self.kind, self.read, initial=self.initial, required=self.is_required, **texts
        )


def field(
    kind: Kind, label: Any = None, *, help_text: Any = "", initial: str = "", **options: Any
) -> Any:
    """The field of a dataclass that is a field of the invoice; see `Field`."""
    what = {"kind": kind, "label": label, "help_text": help_text, "initial": initial}
    return dataclasses.field(**options, metadata=what)


def _declared(document: Any) -> tuple[Field, ...]:
    return tuple(
        Field(field.name, default=default, **field.metadata)
        for field in dataclasses.fields(document)
        if "kind" in field.metadata
        for default in (REQUIRED if field.default is MISSING else field.default,)
    )


#: The fields that a dataclass declares, in order. Remembered: this is called for every line.
fields_of: Callable[[Any], tuple[Field, ...]] = cache(_declared)


def to_wire(part: Any, prefix: str = "") -> Item:
    """The declared fields of `part` as stored, without those at their default."""
    return {
        stored_name: {item.kind.wire_type: item.kind.to_text(value)}
        for stored_name, item in _stored_fields(part.__class__, prefix)
        if (value := getattr(part, item.name)) != item.default
    }


def from_wire(document: type, wire: Item, prefix: str = "") -> dict[str, Any]:
    """The values of the declared fields, by name. Raises KeyError, ValueError."""
    return {
        item.name: item.kind.from_text(wire[stored_name][item.kind.wire_type])
        for stored_name, item in _stored_fields(document, prefix)
        if stored_name in wire or item.is_required
    }


@cache
def _stored_fields(document: Any, prefix: str) -> list[tuple[str, Field]]:
    """The fields with their stored names. Remembered, too."""
    return [(item.stored_as(prefix), item) for item in fields_of(document)]
