"""The lines in the form of an invoice: their formset, and their typed values."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.forms.formsets import BaseFormSet
from django.utils.translation import gettext_lazy as _

from invoices.document.amounts import (
    LINE_FIELDS,
    MAX_LINES,
    WITHOUT_VAT,
    Line,
    check_described,
    check_line,
    price_field,
)
from invoices.document.invoice import Invoice
from invoices.document.requirements import marked_if_reduced

#: The most lines that a rejected form can show. Django would not parse the fields of more lines.
SHOWN_LINES = 240

PREFIX = "lines"

#: The fields that a new line copies from the last one.
_REPEATED = ("vat_rate", "tax_category", "unit")


class LineForm(forms.Form):
    """A line of an invoice in `currency`, of a seller in `country`."""

    field_order = ("description", "quantity", "unit", "unit_price", "vat_rate", "tax_category")

    def __init__(self, *args: Any, currency: str = "", country: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.country = country
        self.fields["unit_price"] = price_field(currency)

    def has_changed(self) -> bool:
        """Whether anything was typed. New lines come with a VAT rate and a quantity."""
        typed = {name: str(self[name].data or "").strip() for name in self.fields}
        return any(
            text not in {"", LINE_FIELDS[name].initial}
            for name, text in typed.items()
            if name not in _REPEATED
        )

    def clean(self) -> dict[str, object]:
        is_without_vat = self.cleaned_data.get("tax_category") in WITHOUT_VAT
        if is_without_vat and self.has_error("vat_rate", "required"):
            del self.errors["vat_rate"]
            self.cleaned_data["vat_rate"] = Decimal(0)
        if not self.errors:
            line = marked_if_reduced(Line(**self.cleaned_data), self.country)
            self.cleaned_data["tax_category"] = line.tax_category
            check_line(line)
        return self.cleaned_data

    def known(self) -> Line | None:
        """The known values of the line, if it has an amount."""
        self.is_valid()  # an incomplete formset does not check its forms
        if not {"quantity", "unit_price"} <= self.cleaned_data.keys():
            return None
        unknown: dict[str, Any] = {"description": "", "vat_rate": Decimal(0)}
        return Line(**unknown | self.cleaned_data)


LineForm.base_fields |= {name: field.form_field() for name, field in LINE_FIELDS.items()}
# The rates of the seller's country, in a list of the page.
LineForm.base_fields["vat_rate"].widget.attrs["list"] = "vat-rates"

_LINE_INPUT = re.compile(rf"{PREFIX}-(\d{{1,3}})-(?:{'|'.join(LINE_FIELDS)})", re.ASCII)


class InvoiceLines(BaseFormSet):
    """The lines of an invoice. Blank lines are ignored."""

    default_error_messages = {  # noqa: RUF012 - a class attribute, as in Django
        "too_many_forms": _("An invoice has at most %(num)d lines."),
        "missing_management_form": _(
            "Some lines may be missing. Check the lines and send the form again."
        ),
    }

    def total_form_count(self) -> int:
        """The number of lines that were sent, at least one.

        The number from the browser is ignored.
        """
        if not self.is_bound:
            return max(1, super().total_form_count())
        sent = _count_lines(self.data)
        return max(sent, super().total_form_count()) if self.management_form.is_valid() else sent

    def initial_form_count(self) -> int:
        """Zero if the formset is bound, because every line may be blank."""
        return 0 if self.is_bound else super().initial_form_count()

    def clean(self) -> None:
        if not any(form.has_changed() for form in self.forms):
            self.forms[0].add_error("description", _("An invoice needs at least one line."))
        descriptions = [form.cleaned_data.get("description", "") for form in self.forms]
        for count, form in enumerate(self.forms, 1):
            try:
                check_described(descriptions[:count])
            except ValidationError as error:
                # The error is shown at the line that exceeds the limit.
                form.add_error("description", error)
                break

    def lines(self) -> list[Line]:
        """The typed lines, as far as they are known."""
        return [*self.by_position().values()]

    def by_position(self) -> dict[int, Line]:
        """Like `lines`, by their positions in the form."""
        typed = {at: form.known() for at, form in enumerate(self.forms) if form.has_changed()}
        return {at: line for at, line in typed.items() if line}


LineFormSet = forms.formset_factory(
    LineForm,
    formset=InvoiceLines,
    extra=0,
    max_num=MAX_LINES,
    validate_max=True,
    absolute_max=SHOWN_LINES,
)


def lines_of(data: Any, about: dict[str, str], initial: Any = None) -> InvoiceLines:
    return cast(InvoiceLines, LineFormSet(data, prefix=PREFIX, initial=initial, form_kwargs=about))


def line_values_of(invoice: Invoice) -> list[dict[str, str]]:
    """The initial values of the lines in a form that issues the same invoice again."""
    return [
        {name: field.to_typed(getattr(line, name)) for name, field in LINE_FIELDS.items()}
        for line in invoice.lines
    ]


def typed_lines(data: Mapping[str, str]) -> list[dict[str, str]]:
    """The typed values of the lines, which are not checked."""
    return [
        {name: data.get(f"{PREFIX}-{count}-{name}", "") for name in LINE_FIELDS}
        for count in range(_count_lines(data))
    ]


def any_typed(lines: list[dict[str, str]]) -> bool:
    """Whether one of the lines, unchecked, has a description or a price."""
    return any(line["description"].strip() or line["unit_price"].strip() for line in lines)


def blank_line_after(lines: list[dict[str, str]]) -> dict[str, str]:
    """A new line, with the VAT rate, the tax category and the unit of the last one."""
    return {name: lines[-1][name] for name in _REPEATED} if lines else {}


def _count_lines(data: Iterable[str]) -> int:
    """The number of lines that have values in `data`, at least one.

    The stated number is ignored.
    """
    matches = map(_LINE_INPUT.fullmatch, data)
    return min(SHOWN_LINES, 1 + max((int(match[1]) for match in matches if match), default=0))
