"""The declaration of a field, and what follows from it.

`invoices.document.invoice` declares each field once, with its kind and what a form needs:

    note: str = field(default="", metadata=declare(MultiLine(1_000), _("Note")))

The form, the command `issueinvoice`, the stored item, the digest,
the JSON and the data of the PDF follow from these declarations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, dataclass
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


def declare(
    kind: Kind, label: Any = None, *, help_text: Any = "", initial: str = ""
) -> dict[str, Any]:
    """The metadata of a dataclass field that is a field of the invoice; see `Field`."""
    return {"kind": kind, "label": label, "help_text": help_text, "initial": initial}


_declared: dict[type, tuple[Field, ...]] = {}


def fields_of(document: type) -> tuple[Field, ...]:
    """The fields that a dataclass declares, in order."""
    if document not in _declared:
        _declared[document] = tuple(
            Field(
                each.name,
                default=REQUIRED if each.default is MISSING else each.default,
                **each.metadata,
            )
            for each in dataclasses.fields(document)
            if "kind" in each.metadata
        )
    return _declared[document]


def to_wire(part: Any, prefix: str = "") -> Item:
    """The declared fields of `part` as stored, without those at their default."""
    wire: Item = {}
    for stored_name, each in _stored_fields(type(part), prefix):
        value = getattr(part, each.name)
        if value != each.default:
            wire[stored_name] = {each.kind.wire_type: each.kind.to_text(value)}
    return wire


def from_wire(document: type, wire: Item, prefix: str = "") -> dict[str, Any]:
    """The values of the declared fields, by name. Raises KeyError, ValueError."""
    values: dict[str, Any] = {}
    for stored_name, each in _stored_fields(document, prefix):
        if stored_name in wire:
            values[each.name] = each.kind.from_text(wire[stored_name][each.kind.wire_type])
        elif each.is_required:
            raise KeyError(stored_name)
    return values


_stored: dict[tuple[type, str], list[tuple[str, Field]]] = {}


def _stored_fields(document: type, prefix: str) -> list[tuple[str, Field]]:
    """The fields with their stored names; remembered, because this is called for every line."""
    if (document, prefix) not in _stored:
        _stored[document, prefix] = [(each.stored_as(prefix), each) for each in fields_of(document)]
    return _stored[document, prefix]
