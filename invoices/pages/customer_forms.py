"""The forms of the address book."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from invoices.document.fields import fields_of
from invoices.document.invoice import NAME_MAX_LENGTH, Customer, typed_customer
from web.requestids import RequestIdForm

_FIELDS = {each.name: each for each in fields_of(Customer) if each.name != "number"}


class VersionForm(forms.Form):
    """A change of a customer: the version that the page showed."""

    version = forms.IntegerField(
        required=False, widget=forms.HiddenInput, min_value=0, max_value=2**63
    )

    def shown_version(self) -> int:
        """No customer has 0, which stands for none."""
        return self.cleaned_data["version"] or 0


class CustomerForm(VersionForm, RequestIdForm):
    """A customer. A new one has a request id, a changed one its version."""

    request_id_salt = "invoices.customer"
    request_id_refused = _(
        "This form was open for more than a day, or it is not from this site. Nothing was saved. "
        "Send it again."
    )

    def customer(self) -> Customer:
        return typed_customer({name: self.cleaned_data[name] for name in _FIELDS})


CustomerForm.base_fields |= {name: each.form_field() for name, each in _FIELDS.items()}


def form_values_of(customer: Customer) -> dict[str, Any]:
    """The initial values of a form that shows `customer`."""
    return {name: getattr(customer, name) for name in _FIELDS}


class SearchForm(forms.Form):
    """The query of the list: `?name=bob`."""

    name = forms.CharField(
        label=_("Name or number"),
        required=False,
        max_length=NAME_MAX_LENGTH,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
