"""The forms of issuing invoices and of lists. No form touches DynamoDB.

The fields of an invoice are declared in `invoices.document.invoice`, with their rules.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.forms.formsets import BaseFormSet
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from dynamo.forms import RequestIdForm
from dynamo.inputs import LongSelect
from invoices.document.amounts import (
    LINE_FIELDS,
    MAX_LINES,
    WITHOUT_VAT,
    Line,
    Totals,
    check_described,
    check_line,
    check_totals,
    price_field,
    totals,
)
from invoices.document.fields import fields_of
from invoices.document.identifiers import EU
from invoices.document.invoice import (
    NAME_MAX_LENGTH,
    TYPED_FIELDS,
    Draft,
    Invoice,
    Seller,
    check_customer,
    check_dates,
    draft_of,
    draw_up,
)
from invoices.document.places import is_currency
from invoices.document.requirements import (
    Lack,
    check_requirements,
    doubts,
    marked_if_reduced,
    missing,
    rates_of,
    terms_left_out,
    without_foreign_terms,
)
from invoices.models import SellerProfile
from invoices.output import einvoices
from invoices.store.issuing import check_may_issue, today
from invoices.store.records import STANDINGS
from invoices.store.sellers import check_seller, is_named, seller_of

#: How many lines a rejected form can show. With more, Django would not parse so many fields.
SHOWN_LINES = 240

#: Years of four digits, as in the number of an invoice.
FIRST_YEAR, LAST_YEAR = 1000, 9999
#: A number has at most 15 digits.
LAST_NUMBER = 10**15

_PREFIX = "lines"


#: What the law and the standard ask of the profile.
_SELLER_NEEDED = ("address", "country", "vat_id", "tax_number")

#: What a new line takes from the last one.
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

    def clean(self) -> dict[str, Any]:
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
        """The line as far as it is known, if it has an amount."""
        self.is_valid()  # a formset that is not whole does not ask
        if not {"quantity", "unit_price"} <= self.cleaned_data.keys():
            return None
        unknown: dict[str, Any] = {"description": "", "vat_rate": Decimal(0)}
        return Line(**unknown | self.cleaned_data)


LineForm.base_fields |= {name: field.form_field() for name, field in LINE_FIELDS.items()}
# The rates of the seller's country, in a list of the page.
LineForm.base_fields["vat_rate"].widget.attrs["list"] = "vat-rates"

_LINE_INPUT = re.compile(rf"{_PREFIX}-(\d{{1,3}})-(?:{'|'.join(LINE_FIELDS)})", re.ASCII)


class _Lines(BaseFormSet):
    """The lines of an invoice. Blank lines are ignored."""

    default_error_messages = {  # noqa: RUF012 - a class attribute, as in Django
        "too_many_forms": _("An invoice has at most %(num)d lines."),
        "missing_management_form": _(
            "Some lines may be missing. Check the lines and send the form again."
        ),
    }

    def total_form_count(self) -> int:
        """At least one, and as many as were sent, whatever the browser says about their number."""
        if not self.is_bound:
            return max(1, super().total_form_count())
        sent = _count_lines(self.data)
        return max(sent, super().total_form_count()) if self.management_form.is_valid() else sent

    def initial_form_count(self) -> int:
        """Zero when bound, because every line may be blank."""
        return 0 if self.is_bound else super().initial_form_count()

    def clean(self) -> None:
        if not any(form.has_changed() for form in self.forms):
            self.forms[0].add_error("description", _("An invoice needs at least one line."))
        said = [form.cleaned_data.get("description", "") for form in self.forms]
        for count, form in enumerate(self.forms, 1):
            try:
                check_described(said[:count])
            except ValidationError as error:
                # At the line that is one too many.
                form.add_error("description", error)
                break

    def lines(self) -> list[Line]:
        """Those that were typed, as far as they are known."""
        return [*self.by_position().values()]

    def by_position(self) -> dict[int, Line]:
        """As `lines`, by their positions in the form."""
        typed = {at: form.known() for at, form in enumerate(self.forms) if form.has_changed()}
        return {at: line for at, line in typed.items() if line}


LineFormSet = forms.formset_factory(
    LineForm,
    formset=_Lines,
    extra=0,
    max_num=MAX_LINES,
    validate_max=True,
    absolute_max=SHOWN_LINES,
)


def _lines_of(data: Any, about: dict[str, str], initial: Any = None) -> _Lines:
    return cast(_Lines, LineFormSet(data, prefix=_PREFIX, initial=initial, form_kwargs=about))


def preview(data: Mapping[str, str]) -> tuple[list[int | None], Totals | None]:
    """The amounts of an invoice form that is not sent yet: of each line, and their sums.

    In minor units; None for what is not known. If a text is not a number, the sums are not known,
    because it will count once it is corrected. Of a line without a rate, the VAT is left out.
    """
    currency = data.get("currency", "")
    typed = _lines_of(data, {"currency": currency}).forms
    if not is_currency(currency):
        return [None] * len(typed), None
    is_wrong = any(
        form.has_error(name) and not form.has_error(name, "required")
        for form in typed
        for name in ("quantity", "unit_price", "vat_rate")
    )
    lines = [form.known() for form in typed]
    amounts = [line.amount(currency) if line else None for line in lines]
    sums = totals(filter(None, lines), currency, bool(data.get("prices_include_tax")))
    rates = {form.cleaned_data.get("vat_rate") for form in typed}
    sums = Totals(sums.net, tuple(share for share in sums.shares if share.rate in rates))
    with suppress(ValidationError):
        check_totals(sums)
        return amounts, None if is_wrong else sums
    return amounts, None


def checks_of(
    seller: Seller, typed: Draft, lines: _Lines, *, usual_terms: str, is_named: bool
) -> dict[str, object]:
    """What pages say about a draft, by its name in templates: what it lacks, what may be wrong."""
    positions = [*lines.by_position()] if lines.is_bound else []
    draft = without_foreign_terms(typed, seller, usual_terms)
    asked = [*doubts(seller, draft), *([terms_left_out(typed)] if draft != typed else [])]
    shown = draw_up(draft, "", seller, today(), "")
    return {
        "law_of": seller.country,
        "required": list(missing(seller, draft, is_named=is_named)),
        "doubts": [_doubt(*item, positions) for item in asked],
        "einvoice_lacks": (list(einvoices.lacks(shown)) if seller.country in EU | {""} else []),
    }


def _doubt(text: object, name: str, line: int | None, positions: list[int]) -> dict[str, object]:
    """A doubt as pages show it, with the field of the form to which it leads."""
    if line is not None:
        field = f"{_PREFIX}-{positions[line]}-{name}"
        return {"text": text, "field": field, "label": LINE_FIELDS[name].label}
    return {"text": text, "field": name, "label": name and TYPED_FIELDS[name].label}


class _TypedForm(forms.Form):
    """What people type apart from the lines."""


def checks(data: Mapping[str, str]) -> dict[str, object]:
    """`checks_of` an invoice form that is not sent yet, as far as it is known.

    The page sends what it knows of the seller: see `InvoiceForm.about_seller`.
    """
    form = _TypedForm(data)
    lines = _lines_of(data, {"currency": data.get("currency", "")})
    form.is_valid()
    about = {item.name: data.get(f"seller_{item.name}", "") for item in fields_of(Seller)}
    draft = draft_of(_UNKNOWN | form.cleaned_data, lines.lines())
    return checks_of(
        Seller(**about),
        draft,
        lines,
        usual_terms=data.get("seller_payment_terms", ""),
        is_named=bool(data.get("seller_is_named")),
    )


#: The fields of the form by the parts of the page. Those of a part with a title are folded away
#: until one has a value or an error. Fields that are not named here end the last part.
_PARTS: dict[str, tuple[object, tuple[str, ...]]] = {
    "customer": ("", ("customer_name", "customer_address", "customer_country")),
    "more_of_customer": (
        _("More about the customer"),
        (
            "customer_vat_id",
            "customer_email",
            "customer_language",
            "customer_number",
            "buyer_reference",
        ),
    ),
    "dates": (
        _("Supply and payment"),
        ("supplied_from", "supplied_to", "due_date", "payment_terms"),
    ),
    "prices": ("", ("currency", "prices_include_tax")),
    "below": ("", ("exemption_reason", "note")),
}
_NAMED = set(chain.from_iterable(names for _title, names in _PARTS.values()))
_PARTS["below"] = "", (*_PARTS["below"][1], *(name for name in TYPED_FIELDS if name not in _NAMED))


#: A form in which nothing was typed.
_UNKNOWN = {
    name: "" if field.is_required else field.default for name, field in TYPED_FIELDS.items()
}


@dataclass(frozen=True)
class Part:
    """Some fields of the form. With a `title` they are folded away unless `is_open`."""

    title: object
    fields: list[forms.BoundField]

    @property
    def is_open(self) -> bool:
        return any(field.errors or field.value() for field in self.fields)


class InvoiceForm(RequestIdForm):
    """A new invoice. `lines` is the formset of its lines."""

    request_id_salt = "sequences.invoice"
    request_id_refused = _(
        "This form was open for more than a day, or it is not from this site. Nothing was issued. "
        "Send it again, unless you have already issued this invoice."
    )

    def __init__(
        self,
        *args: Any,
        user: User,
        profile: SellerProfile,
        is_preview: bool = False,
        lines: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        """`lines` are the initial values of the lines; by default there is one blank line.

        A preview may lack what the law requires.
        """
        super().__init__(*args, **kwargs)
        self.user, self.profile = user, profile
        self.seller = seller_of(user, profile)
        self.is_named = is_named(user, profile)
        self.usual_terms = profile.payment_terms or ""
        self.issued_on, self.is_preview = today(user.time_zone), is_preview
        for item in self.required_by_law:
            if item.field in self.fields:
                # Small invoices need less. The page does not call it optional.
                self.fields[item.field].is_asked = True  # type: ignore[attr-defined]  # of field.html
        data = self.data if self.is_bound else None
        currency = str(self["currency"].value() or "").strip().upper()
        about = {"currency": currency, "country": self.seller.country}
        self.lines = _lines_of(data, about, lines or [{}])

    @cached_property
    def parts(self) -> dict[str, Part]:
        return {
            key: Part(title, [self[name] for name in names])
            for key, (title, names) in _PARTS.items()
        }

    def visible_fields(self) -> list[forms.BoundField]:
        """All fields in the order of the page."""
        lines = [bound for form in self.lines.forms for bound in form.visible_fields()]
        *above, below = [part.fields for part in self.parts.values()]
        return [*chain.from_iterable(above), *lines, *below]

    @property
    def about_seller(self) -> str:
        """What `checks` needs, in the form of a query."""
        about = {item: getattr(self.seller, item) for item in _SELLER_NEEDED}
        about["payment_terms"] = self.usual_terms
        about["is_named"] = "yes" if self.is_named else ""
        return urlencode({f"seller_{name}": text for name, text in about.items() if text})

    @property
    def vat_rates(self) -> list[str]:
        """The rates to offer."""
        return rates_of(self.seller.country)

    @cached_property
    def required_by_law(self) -> list[Lack]:
        """What the law of the seller's country requires of a form in which nothing was typed."""
        return list(missing(self.seller, is_named=self.is_named))

    def clean(self) -> dict[str, Any]:
        """Find everything that is wrong at once, as far as what is typed tells it."""
        lines_are_valid = self.lines.is_valid()
        draft = self.draft()
        self._refuse_if(check_seller, self.seller)
        self._refuse_if(check_customer, draft.customer)
        self._refuse_if(check_dates, draft, self.issued_on)
        sums = totals(draft.lines, draft.currency, draft.prices_include_tax)
        self._refuse_if(check_totals, sums)
        if not self.is_preview:
            self._refuse_if(check_may_issue, self.user)
            self._refuse_if(check_requirements, draft, self.seller, is_named=self.is_named)
        if not lines_are_valid:
            about_all = self.lines.non_form_errors()
            where = _("Correct the marked fields in the lines below.")
            if self.errors.keys() - {NON_FIELD_ERRORS}:
                where = _("Correct the marked fields, also in the lines below.")
            self.add_error(None, about_all.as_data() or where)
        return self.cleaned_data

    def _refuse_if(self, check: Callable[..., None], *arguments: object, **named: object) -> None:
        """Add what `check` raises, except at fields whose text is not even readable."""
        try:
            check(*arguments, **named)
        except ValidationError as error:
            errors = error.update_error_dict({})
            wrong = self.errors.keys() - {NON_FIELD_ERRORS}
            new = {name: error for name, error in errors.items() if name not in wrong}
            self.add_error(None, ValidationError(new))

    def draft(self) -> Draft:
        """The draft to issue, as far as it is known: without payment terms in another language."""
        return without_foreign_terms(self.typed_draft(), self.seller, self.usual_terms)

    def typed_draft(self) -> Draft:
        """What was typed, as far as it is known, or what a new form begins with, unchecked.

        Unknown values are at their defaults.
        """
        if not self.is_bound:
            shown = {name: self[name].value() or _UNKNOWN[name] for name in TYPED_FIELDS}
            return draft_of(shown, [])
        return draft_of(_UNKNOWN | self.cleaned_data, self.lines.lines())

    @property
    def is_full(self) -> bool:
        """Whether no line can be added."""
        return len(self.lines.forms) >= MAX_LINES


for form in (InvoiceForm, _TypedForm):
    form.base_fields |= {name: field.form_field() for name, field in TYPED_FIELDS.items()}


def line_values_of(invoice: Invoice) -> list[dict[str, str]]:
    """The initial values of the lines of a form that issues the same again."""
    return [
        {name: field.to_typed(getattr(line, name)) for name, field in LINE_FIELDS.items()}
        for line in invoice.lines
    ]


def typed_lines(data: Mapping[str, str]) -> list[dict[str, str]]:
    """What was typed into the lines, unchecked."""
    return [
        {name: data.get(f"{_PREFIX}-{count}-{name}", "") for name in LINE_FIELDS}
        for count in range(_count_lines(data))
    ]


def any_typed(lines: list[dict[str, str]]) -> bool:
    """Whether one of the lines, unchecked, has a description or a price."""
    return any(line["description"].strip() or line["unit_price"].strip() for line in lines)


def blank_line_after(lines: list[dict[str, str]]) -> dict[str, str]:
    """A new line, with the VAT rate, the tax category and the unit of the last one."""
    return {name: lines[-1][name] for name in _REPEATED} if lines else {}


def _count_lines(data: Iterable[str]) -> int:
    """How many lines `data` has values for, whatever it says about their number; at least one."""
    matches = map(_LINE_INPUT.fullmatch, data)
    return min(SHOWN_LINES, 1 + max((int(match[1]) for match in matches if match), default=0))


#: The states that the list can be limited to, each with the standings that it includes.
FILTERS = {name: (name,) for name in reversed(STANDINGS)} | {"open": ("open", "overdue")}


def search_field(label: Any) -> forms.CharField:
    """The field in which people type what a list is searched for."""
    widget = forms.TextInput(attrs={"type": "search", "autocomplete": "off"})
    return forms.CharField(label=label, required=False, max_length=NAME_MAX_LENGTH, widget=widget)


class ListForm(forms.Form):
    """The query of the list: `?year=2026&before=120&customer=bob&state=open`."""

    year = forms.IntegerField(required=False, min_value=FIRST_YEAR, max_value=LAST_YEAR)
    before = forms.IntegerField(required=False, min_value=1, max_value=LAST_NUMBER)
    state = forms.ChoiceField(
        label=_("Status"),
        required=False,
        choices=[("", _("All")), *((name, STANDINGS[name]) for name in FILTERS)],
        widget=LongSelect,
    )
    customer = search_field(_("Customer or number"))
