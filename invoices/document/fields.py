"""The fields of an invoice: their kinds, and how dataclasses declare them.

`invoices.document.invoice` declares each field once, by an attribute (`dynamo.inputs`):

    note: str = field(MultiLine(_("Note"), max_length=1_000, default=""))

The form, the command `issueinvoice`, the stored item, the digest, the JSON and the data of the PDF
follow from these declarations.
"""

import dataclasses
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _, ngettext_lazy

from dynamo import DateAttribute, DecimalAttribute, IntegerAttribute, inputs
from dynamo.inputs import InputAttribute, in_camel_case
from dynamo.wire.types import Item
from dynamo.wire.values import as_typed
from invoices.document.fonts import as_shown, missing_characters, packages_for
from invoices.document.money import NUMBER_MAX_LENGTH, readings, with_another_decimal

#: An invoice may be issued in these years. To read all series of an account, each of these years is
#: read.
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

# `date.fromisoformat` also accepts 20261121 and 2026-W48-1.
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

# The most unprintable characters that an error names.
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


#: Texts of one line and of several lines, with only those characters that the PDF can print.
SingleLine = partial(inputs.SingleLine, rule=check_printable)
MultiLine = partial(inputs.MultiLine, rule=check_printable)


class Number(InputAttribute[Decimal], DecimalAttribute):
    """A decimal number with at most `before` digits before the point and `after` digits after it.

    It is a text input, because the decimal keypad of a phone lacks the minus sign and, in many
    countries, the point. `is_grouped` says that `1,080` can only be a thousand and eighty, for
    example as a price in a currency without decimals. `1.080` can be either.
    """

    def __init__(
        self,
        label: Any = None,
        *,
        before: int,
        after: int,
        bounds: tuple[int, int] | None = None,
        may_be_zero: bool = True,
        is_percentage: bool = False,
        is_grouped: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(label, max_digits=before + after, decimal_places=after, **options)
        self.before, self.after, self.bounds = before, after, bounds
        self.may_be_zero = may_be_zero
        self.is_percentage, self.is_grouped = is_percentage, is_grouped

    def deserialize(self, value: str) -> Decimal:
        # An invoice shows 1.5 hours, not 1.500000.
        return Decimal(value)

    def parse_in_form(self, text: str) -> Decimal:
        """The number of a text such as `1.234,50`; see `invoices.document.money`.

        Raises:
            ValidationError: also if the text has two readings and both are allowed. The error shows
                both, so that the user can type one of them.
        """
        text = typed = text.strip()
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
        return self.parse((allowed or found or [typed])[0])

    def to_typed(self, value: object) -> str:
        text = self.to_text(value)
        return text if len(self._allowed(readings(text))) < 2 else with_another_decimal(text)

    def _allowed(self, plain: list[str]) -> list[str]:
        """The numbers among `plain` that `parse` accepts."""
        allowed = []
        for text in plain:
            with suppress(ValidationError):
                self.parse(text)
                allowed.append(text)
        return allowed

    def parse(self, text: str) -> Decimal:
        """The number of a text with a decimal point and without groups, as in a program."""
        text = text.strip()
        match = _NUMBER.fullmatch(text) if len(text) <= NUMBER_MAX_LENGTH else None
        if not match:
            raise _wrong("invalid")
        if len(match[1]) > self.before:
            raise _wrong("max_digits", limit=self.before)
        if len(match[2]) > self.after:
            raise _wrong("max_decimals", limit=self.after)
        number = Decimal(text)
        if not number and not self.may_be_zero:
            raise _wrong("zero")
        if self.bounds and not self.bounds[0] <= number <= self.bounds[1]:
            raise _wrong("bounds", first=self.bounds[0], last=self.bounds[1])
        return number or Decimal(0)  # not minus zero


def _wrong(code: str, **values: object) -> ValidationError:
    return ValidationError(_WRONG_NUMBER[code], code, values)


class Amount(InputAttribute[int], IntegerAttribute):
    """An amount in minor units. People do not type it."""


class Flag(InputAttribute[bool]):
    """Yes or no; a checkbox."""

    attr_type = "S"
    value_types = (bool,)

    def stored(self, value: bool) -> str:
        return "yes" if value else ""

    def deserialize(self, value: str) -> bool:
        return value == "yes"

    def form_field(self, **_changes: object) -> forms.Field:
        return forms.BooleanField(label=self.label, help_text=self.help_text, required=False)


class Day(InputAttribute[date], DateAttribute):
    """A date in one of `YEARS`."""

    def parse(self, text: str) -> date:
        try:
            if not _DATE.fullmatch(text.strip()):
                raise ValueError(text)
            day = date.fromisoformat(text.strip())
        except ValueError as error:
            raise ValidationError(_("Enter a date such as 2026-11-21."), code="invalid") from error
        if day.year not in YEARS:
            limits = {"first": YEARS[0], "last": YEARS[-1]}
            raise ValidationError(_("Enter a year from %(first)s to %(last)s."), "year", limits)
        return day

    def widget(self) -> forms.Widget:
        return forms.DateInput({"type": "date"})


class Moment(InputAttribute[datetime]):
    """A time with its zone, which is stored, too. People do not type it."""

    attr_type = "S"
    value_types = (datetime,)

    def stored(self, value: datetime) -> str:
        return value.isoformat()

    def deserialize(self, value: str) -> datetime:
        return datetime.fromisoformat(value)


# Documents ----------------------------------------------------------------------------------------


def field(attribute: InputAttribute, **options: Any) -> Any:
    """The field of a dataclass whose values are those of `attribute`, with its default."""
    if not attribute.is_required:
        options["default"] = attribute.default
    return dataclasses.field(**options, metadata={"attribute": attribute})


def _declared(document: type) -> tuple[InputAttribute[object], ...]:
    declared = []
    for item in dataclasses.fields(document):
        if attribute := item.metadata.get("attribute"):
            attribute.__set_name__(document, item.name)
            declared.append(attribute)
    return tuple(declared)


#: The attributes that a dataclass declares, in order. The result is cached, because this is called
#: for every line.
fields_of: Callable[[object], tuple[InputAttribute[object], ...]] = cache(_declared)


def words_of(attribute: InputAttribute[object]) -> str:
    """The name in English prose."""
    return attribute.name.replace("_", " ").replace("vat", "VAT")


def to_wire(part: Any, prefix: str = "") -> Item:
    """The declared fields of `part` as stored, without those that have their default values."""
    return {
        stored_name: as_typed(item.attr_type, item.stored(value))
        for stored_name, item in _stored_fields(part.__class__, prefix)
        if (value := getattr(part, item.name)) != item.default
    }


def from_wire(document: type, wire: Item, prefix: str = "") -> dict[str, Any]:
    """The values of the declared fields, by name. Raises KeyError, ValueError."""
    stored: Any = wire
    return {
        item.name: item.deserialize(stored[stored_name][item.attr_type])
        for stored_name, item in _stored_fields(document, prefix)
        if stored_name in wire or item.is_required
    }


@cache
def _stored_fields(document: object, prefix: str) -> list[tuple[str, InputAttribute[object]]]:
    """The fields with their stored names, such as `sellerVatId` with the `prefix` "seller".

    The result is cached, as for `fields_of`.
    """
    return [
        (in_camel_case(f"{prefix}_{item.name}".strip("_")), item) for item in fields_of(document)
    ]
