"""The shape of what people type to issue an invoice, to void one, and to find some.

No form touches DynamoDB. Each value has its rule in `invoices.rules`, which the commands hold as
well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.forms.formsets import BaseFormSet
from django.utils.translation import gettext_lazy as _

from invoices import rules
from invoices.amounts import Line
from invoices.documents import Draft, Invoice, Party
from invoices.money import currency_choices
from web.requestids import RequestIdForm

DEFAULT_CURRENCY = "EUR"
DEFAULT_QUANTITY = "1"

#: The lines that a refused form can show: with more, Django refuses so many fields unread.
SHOWN_LINES = 240

#: Years of four digits, as they stand in an invoice's number.
FIRST_YEAR, LAST_YEAR = 1000, 9999
#: A number has at most 15 digits.
LAST_NUMBER = 10**15

_PREFIX = "lines"


class RuledField(forms.CharField):
    """A text that one of `invoices.rules` accepts, as that makes it."""

    def __init__(self, rule: Callable[[str], Any], **options: Any) -> None:
        super().__init__(**options)
        self._rule = rule

    def clean(self, value: Any) -> Any:
        """What is stored of `value`."""
        return self._rule(super().clean(value))


def _ruled(rule: Callable[[str], Any], label: Any, limit: int = 0, **options: Any) -> RuledField:
    """The limit is the browser's to hold; the rule refuses what comes past it."""
    attrs: dict[str, Any] = {"maxlength": limit} if limit else {}
    attrs |= {"autocomplete": "off", **options.pop("attrs", {})}
    widget = options.pop("widget", forms.TextInput)
    return RuledField(rule, label=label, widget=widget(attrs=attrs), **options)


class LineForm(forms.Form):
    """A line of an invoice. A decimal keypad lacks the minus and, in many countries, the point."""

    description = _ruled(
        rules.clean_description, _("Description"), limit=rules.DESCRIPTION_MAX_LENGTH
    )
    quantity = _ruled(rules.clean_quantity, _("Quantity"), initial=DEFAULT_QUANTITY)
    unit_price = _ruled(rules.clean_unit_price, _("Unit price"))
    vat_rate = _ruled(rules.clean_vat_rate, _("VAT %"))

    def has_changed(self) -> bool:
        """Whether anything was typed; a VAT rate is no line yet: a new line brings it along."""
        typed = {name: str(self[name].data or "").strip() for name in self.fields}
        return bool(
            typed["description"]
            or typed["unit_price"]
            or typed["quantity"] not in {"", DEFAULT_QUANTITY}
        )

    def line(self) -> Line:
        """The line that was typed."""
        return Line(**self.cleaned_data)


_LINE_FIELD = re.compile(rf"{_PREFIX}-(\d{{1,3}})-(?:{'|'.join(LineForm.base_fields)})", re.ASCII)


class _Lines(BaseFormSet):
    """The lines of an invoice; blank ones between them are passed over."""

    default_error_messages = {  # noqa: RUF012 - as Django's, which nobody changes
        "too_many_forms": _("An invoice has at most %(num)d lines."),
        "missing_management_form": _(
            "The lines did not arrive whole. Look through them and send the form once more."
        ),
    }

    def total_form_count(self) -> int:
        """At least one, and as many as were sent, whatever the browser says of their number."""
        if not self.is_bound:
            return max(1, super().total_form_count())
        sent = _count_lines(self.data)
        return max(sent, super().total_form_count()) if self.management_form.is_valid() else sent

    def initial_form_count(self) -> int:
        """None that is stored already: each line is new, and may be blank."""
        return 0 if self.is_bound else super().initial_form_count()

    def clean(self) -> None:
        """Refuse an invoice without a line, at the first one."""
        if not any(form.has_changed() for form in self.forms):
            self.forms[0].add_error("description", _("An invoice has at least one line."))

    def lines(self) -> list[Line]:
        """What was typed."""
        return [form.line() for form in self.forms if form.has_changed()]


LineFormSet = forms.formset_factory(
    LineForm,
    formset=_Lines,
    extra=0,
    max_num=rules.MAX_LINES,
    validate_max=True,
    absolute_max=SHOWN_LINES,
)


class InvoiceForm(RequestIdForm):
    """An invoice to be issued; `lines` is the formset of its lines."""

    customer_name = _ruled(
        rules.clean_customer_name, _("Customer’s name"), limit=rules.NAME_MAX_LENGTH
    )
    customer_address = _ruled(
        rules.clean_address,
        _("Customer’s address"),
        limit=rules.ADDRESS_MAX_LENGTH,
        required=False,
        widget=forms.Textarea,
        attrs={"rows": 3},
    )
    currency = forms.ChoiceField(
        label=_("Currency"), choices=currency_choices, initial=DEFAULT_CURRENCY
    )
    note = _ruled(
        rules.clean_note,
        _("Note"),
        limit=rules.NOTE_MAX_LENGTH,
        required=False,
        widget=forms.Textarea,
        attrs={"rows": 2},
        help_text=_("Printed below the total: when and how to pay, for example."),
    )

    request_id_salt = "sequences.invoice"
    request_id_refused = _(
        "This form was open for more than a day, or did not come from this site. "
        "Nothing was issued; if you have not sent it before, send it once more."
    )

    def __init__(
        self, *args: Any, seller: Party, lines: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> None:
        """`lines` are the first values of the lines; without any there is one, blank."""
        super().__init__(*args, **kwargs)
        self.seller = seller
        data = self.data if self.is_bound else None
        self.lines = cast(_Lines, LineFormSet(data, prefix=_PREFIX, initial=lines or [{}]))

    def visible_fields(self) -> list[forms.BoundField]:
        """Those of the lines as well, in the order of the page."""
        own = {bound.name: bound for bound in super().visible_fields()}
        note = own.pop("note")
        lines = [bound for form in self.lines.forms for bound in form.visible_fields()]
        return [*own.values(), *lines, note]

    def clean(self) -> dict[str, Any]:
        """Check the seller and the lines, each by itself and together."""
        rules.check_seller(self.seller)
        if not self.lines.is_valid():
            about_all = self.lines.non_form_errors()
            where = (
                _("Look through the marked fields, and the lines below them.")
                if self.errors
                else _("Look through the lines below.")
            )
            raise ValidationError(about_all.as_data() or where)
        if "currency" in self.cleaned_data:
            rules.clean_lines(self.lines.lines(), self.cleaned_data["currency"])
        return self.cleaned_data

    def draft(self) -> Draft:
        """The invoice that is asked for."""
        values = self.cleaned_data
        return Draft(
            customer=Party(values["customer_name"], values["customer_address"]),
            lines=tuple(self.lines.lines()),
            currency=values["currency"],
            note=values["note"],
        )

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another line."""
        return len(self.lines.forms) >= rules.MAX_LINES


def values_of(invoice: Invoice) -> dict[str, Any]:
    """The first values of a form that issues the same once more."""
    return {
        "customer_name": invoice.customer.name,
        "customer_address": invoice.customer.address,
        "currency": invoice.currency,
        "note": invoice.note,
    }


def line_values_of(invoice: Invoice) -> list[dict[str, Any]]:
    """The first values of that form's lines."""
    return [
        {
            "description": line.description,
            **{name: f"{getattr(line, name):f}" for name in ("quantity", "unit_price", "vat_rate")},
        }
        for line in invoice.lines
    ]


def typed_values(data: Mapping[str, str]) -> dict[str, Any]:
    """What was typed into an invoice form, unchecked, but for its lines."""
    return {name: data.get(name, "") for name in InvoiceForm.base_fields}


def typed_lines(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """What was typed into the lines, unchecked."""
    return [
        {name: data.get(f"{_PREFIX}-{count}-{name}", "") for name in LineForm.base_fields}
        for count in range(_count_lines(data))
    ]


def blank_line_after(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """A new line, with the VAT rate of the last."""
    return {"vat_rate": lines[-1]["vat_rate"]} if lines else {}


def _count_lines(data: Iterable[str]) -> int:
    """How many lines `data` has values of, whatever it says of their number; at least one."""
    matches = map(_LINE_FIELD.fullmatch, data)
    return min(SHOWN_LINES, 1 + max((int(match[1]) for match in matches if match), default=0))


class VoidForm(forms.Form):
    """Why an invoice is voided."""

    reason = _ruled(
        rules.clean_reason,
        _("Reason"),
        limit=rules.REASON_MAX_LENGTH,
        help_text=_("Your customer sees it on the invoice."),
    )


class ListForm(forms.Form):
    """Which invoices are asked for, as in `?year=2026&before=120&customer=bob`."""

    year = forms.IntegerField(required=False, min_value=FIRST_YEAR, max_value=LAST_YEAR)
    before = forms.IntegerField(required=False, min_value=1, max_value=LAST_NUMBER)
    customer = forms.CharField(
        label=_("Customer"),
        required=False,
        max_length=rules.NAME_MAX_LENGTH,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
