"""The forms of issuing invoices and of lists. No form touches DynamoDB.

The fields of an invoice are declared in `invoices.document.invoice`, with their rules.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from accounts.models import AbstractAccount
from dynamo.forms import RequestIdForm
from dynamo.inputs import LongSelect
from invoices.document.amounts import LINE_FIELDS, MAX_LINES, Totals, check_totals, totals
from invoices.document.identifiers import EU
from invoices.document.invoice import (
    NAME_MAX_LENGTH,
    TYPED_FIELDS,
    Draft,
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
    missing,
    rates_of,
    terms_left_out,
    without_foreign_terms,
)
from invoices.models import SellerProfile
from invoices.output import einvoices
from invoices.pages.lineforms import PREFIX, lines_of
from invoices.store.issuing import check_may_issue, today
from invoices.store.records import STANDINGS
from invoices.store.sellers import check_seller, seller_of

#: Years of four digits, as in the number of an invoice.
FIRST_YEAR, LAST_YEAR = 1000, 9999
#: A number has at most 15 digits.
LAST_NUMBER = 10**15

#: The fields of the form, by the parts of the page. Other fields are added to the last part.
_PARTS: dict[str, tuple[str, ...]] = {
    "customer": ("customer_name", "customer_address", "customer_country"),
    "more_of_customer": (
        "customer_vat_id",
        "customer_email",
        "customer_language",
        "customer_number",
        "buyer_reference",
    ),
    "dates": ("supplied_from", "supplied_to", "due_date", "payment_terms"),
    "prices": ("currency", "prices_include_tax"),
    "below": ("exemption_reason", "note"),
}
_NAMED = set(chain.from_iterable(_PARTS.values()))
_PARTS["below"] += tuple(name for name in TYPED_FIELDS if name not in _NAMED)


#: A form in which nothing was typed.
_UNKNOWN = {
    name: "" if field.is_required else field.default for name, field in TYPED_FIELDS.items()
}


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
        user: AbstractAccount,
        profile: SellerProfile,
        is_preview: bool = False,
        lines: Sequence[Mapping[str, object]] | None = None,
        **kwargs: Any,
    ) -> None:
        """`lines` are the initial values of the lines; by default there is one blank line.

        A preview may lack values that the law requires.
        """
        super().__init__(*args, **kwargs)
        self.user, self.profile = user, profile
        self.seller = seller_of(user, profile)
        self.usual_terms = profile.payment_terms or ""
        self.issued_on, self.is_preview = today(user.time_zone), is_preview
        #: The page does not mark these fields as optional, although small invoices may lack them.
        self.wanted_fields = {item.field for item in self.required_by_law}
        data = self.data if self.is_bound else None
        self.currency = str(self["currency"].value() or "").strip().upper()
        about = {"currency": self.currency, "country": self.seller.country}
        self.lines = lines_of(data, about, lines or [{}])

    @cached_property
    def parts(self) -> dict[str, list[forms.BoundField]]:
        return {key: [self[name] for name in names] for key, names in _PARTS.items()}

    def visible_fields(self) -> list[forms.BoundField]:
        """All fields in the order of the page."""
        lines = [bound for form in self.lines.forms for bound in form.visible_fields()]
        *above, below = self.parts.values()
        return [*chain.from_iterable(above), *lines, *below]

    def amounts(self) -> tuple[list[int | None], Totals | None]:
        """The amount of each line and their sums, in minor units; None if a value is not known.

        If a text is not a number, the sums are not known, because the corrected number will count.
        The VAT of a line without a rate is left out.
        """
        typed, currency = self.lines.forms, self.currency
        if not is_currency(currency):
            return [None] * len(typed), None
        is_wrong = any(
            form.has_error(name) and not form.has_error(name, "required")
            for form in typed
            for name in ("quantity", "unit_price", "vat_rate")
        )
        lines = [form.known() for form in typed]
        amounts = [line.amount(currency) if line else None for line in lines]
        includes_tax = bool(self.cleaned_data.get("prices_include_tax"))
        sums = totals(filter(None, lines), currency, includes_tax)
        rates = {form.cleaned_data.get("vat_rate") for form in typed}
        sums = Totals(sums.net, tuple(share for share in sums.shares if share.rate in rates))
        with suppress(ValidationError):
            check_totals(sums)
            return amounts, None if is_wrong else sums
        return amounts, None

    def checks(self) -> dict[str, object]:
        """The texts about missing values of the draft, and about values that may be wrong."""
        typed, country = self.typed_draft(), self.seller.country
        draft = without_foreign_terms(typed, self.seller, self.usual_terms)
        asked = [*doubts(self.seller, draft), *([terms_left_out(typed)] if draft != typed else [])]
        shown = draw_up(draft, "", self.seller, today(), "")
        return {
            "law_of": country,
            "required": list(missing(self.seller, draft)),
            "doubts": [self._doubt(*item) for item in asked],
            "einvoice_lacks": list(einvoices.lacks(shown)) if country in EU | {""} else [],
        }

    def _doubt(self, text: object, name: str, line: int | None) -> dict[str, object]:
        """A doubt in the form of the page, with a link to the field of the form."""
        if line is not None:
            field = f"{PREFIX}-{[*self.lines.by_position()][line]}-{name}"
            return {"text": text, "field": field, "label": LINE_FIELDS[name].label}
        return {"text": text, "field": name, "label": name and TYPED_FIELDS[name].label}

    @property
    def vat_rates(self) -> list[str]:
        """The rates to offer."""
        return rates_of(self.seller.country)

    @cached_property
    def required_by_law(self) -> list[Lack]:
        """The values that the law of the seller's country requires in an empty form."""
        return list(missing(self.seller))

    def clean(self) -> dict[str, object]:
        """Find all errors of the typed values at once."""
        lines_are_valid = self.lines.is_valid()
        draft = self.draft()
        self._refuse_if(check_seller, self.seller)
        self._refuse_if(check_customer, draft.customer)
        self._refuse_if(check_dates, draft, self.issued_on)
        sums = totals(draft.lines, draft.currency, draft.prices_include_tax)
        self._refuse_if(check_totals, sums)
        if not self.is_preview:
            self._refuse_if(check_may_issue, self.user)
            self._refuse_if(check_requirements, draft, self.seller)
        if not lines_are_valid:
            about_all = self.lines.non_form_errors()
            where = _("Correct the marked fields in the lines below.")
            if self.errors.keys() - {NON_FIELD_ERRORS}:
                where = _("Correct the marked fields, also in the lines below.")
            self.add_error(None, about_all.as_data() or where)
        return self.cleaned_data

    def _refuse_if(self, check: Callable[..., None], *arguments: object, **named: object) -> None:
        """Add the errors of `check`, except at fields that have an error already."""
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
        """The typed values as far as they are known, or the values of a new form, unchecked.

        Unknown values have their defaults.
        """
        if not self.is_bound:
            shown = {name: self[name].value() or _UNKNOWN[name] for name in TYPED_FIELDS}
            return draft_of(shown, [])
        return draft_of(_UNKNOWN | self.cleaned_data, self.lines.lines())

    @property
    def is_full(self) -> bool:
        """Whether the invoice has the maximum number of lines."""
        return len(self.lines.forms) >= MAX_LINES


InvoiceForm.base_fields |= {name: field.form_field() for name, field in TYPED_FIELDS.items()}


#: The states that the list can be limited to, each with the standings that it includes.
FILTERS = {name: (name,) for name in reversed(STANDINGS)} | {"open": ("open", "overdue")}


def search_field(label: Any) -> forms.CharField:
    """The field for the search text of a list."""
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
