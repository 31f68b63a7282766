"""The declaration of a field, and what follows from it.

`invoices.document.invoice` declares each field once, with its kind and what a form needs:

    note: str = stated(MultiLine(1_000), _("Note"), default="")

The form, the command `issueinvoice`, the stored item, the digest, the JSON and the data of the PDF
follow from these declarations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo.extending import Item
from invoices.document.kinds import Flag, is_blank
from web.kinds import FormField, Kind

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
        if not is_blank(typed):
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


def stated(
    kind: Kind, label: Any = None, *, help_text: Any = "", initial: str = "", **options: Any
) -> Any:
    """The field of a dataclass that is a field of the invoice; see `Field`."""
    what = {"kind": kind, "label": label, "help_text": help_text, "initial": initial}
    return dataclasses.field(**options, metadata=what)


def _declared(document: Any) -> tuple[Field, ...]:
    return tuple(
        Field(each.name, default=default, **each.metadata)
        for each in dataclasses.fields(document)
        if "kind" in each.metadata
        for default in (REQUIRED if each.default is MISSING else each.default,)
    )


#: The fields that a dataclass declares, in order. Remembered: this is called for every line.
fields_of: Callable[[Any], tuple[Field, ...]] = cache(_declared)


def to_wire(part: Any, prefix: str = "") -> Item:
    """The declared fields of `part` as stored, without those at their default."""
    return {
        stored_name: {each.kind.wire_type: each.kind.to_text(value)}
        for stored_name, each in _stored_fields(part.__class__, prefix)
        if (value := getattr(part, each.name)) != each.default
    }


def from_wire(document: type, wire: Item, prefix: str = "") -> dict[str, Any]:
    """The values of the declared fields, by name. Raises KeyError, ValueError."""
    return {
        each.name: each.kind.from_text(wire[stored_name][each.kind.wire_type])
        for stored_name, each in _stored_fields(document, prefix)
        if stored_name in wire or each.is_required
    }


@cache
def _stored_fields(document: Any, prefix: str) -> list[tuple[str, Field]]:
    """The fields with their stored names, remembered likewise."""
    return [(each.stored_as(prefix), each) for each in fields_of(document)]
