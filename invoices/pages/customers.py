"""The pages and forms of the address book. They show the customers of the signed-in account."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.functional import cached_property
from django.utils.translation import gettext as _, gettext_lazy
from django.views import View
from django.views.generic import TemplateView

from dynamo.forms import ModelForm, RequestIdForm
from invoices.document.fields import fields_of
from invoices.document.identifiers import clean_vat_id_of_customer
from invoices.document.invoice import NAME_MAX_LENGTH, Customer
from invoices.models import CustomerItem
from invoices.pages.base import LongPageMixin, OwnFormView, OwnInvoicesMixin, SellerMixin
from invoices.pages.forms import search_field
from invoices.pages.views import figure
from invoices.store import customers as book
from invoices.store.lists import search_invoices
from invoices.store.records import find_invoice

#: The most customers that the form of an invoice suggests.
SUGGESTED = 20

_FIELDS = {item.name: item for item in fields_of(Customer) if item.name != "number"}


class CustomerFormMixin(forms.Form):
    """The fields of a customer, as `Customer` declares them."""

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        try:
            if not self.errors:
                vat_id, country = values["vat_id"] or "", values["country"] or ""
                values["vat_id"] = clean_vat_id_of_customer(vat_id, country) or None
        except ValidationError as error:
            self.add_error("vat_id", error)
        return values


class NewCustomerForm(CustomerFormMixin, RequestIdForm):
    request_id_salt = "invoices.customer"


class CustomerForm(CustomerFormMixin, ModelForm[CustomerItem]):
    class Meta:
        model = CustomerItem
        fields = tuple(_FIELDS)


for _form in (NewCustomerForm, CustomerForm):
    _form.base_fields |= {
        # A blank field stores nothing.
        name: field.form_field(null=not field.is_required, default=None)
        for name, field in _FIELDS.items()
    }


class DeleteForm(ModelForm[CustomerItem]):
    """The confirmation that a customer is deleted, as the page showed it."""

    class Meta:
        model = CustomerItem
        fields = ()


class SearchForm(forms.Form):
    """The query of the list: `?name=bob&after=<id>`."""

    name = search_field(gettext_lazy("Name or number"))
    after = forms.UUIDField(required=False)


class CustomerListView(OwnInvoicesMixin, LongPageMixin, TemplateView):
    template_name = "invoices/customer_list.html"

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        form = SearchForm(self.request.GET)
        if not form.is_valid():
            raise Http404("The query of the list is not valid.")
        name = form.cleaned_data["name"]
        found = book.list_customers(self.account, name, after=str(form.cleaned_data["after"] or ""))
        return super().get_context_data(form=form, name=name, found=found, **kwargs)


class CustomerNewView(SellerMixin, LongPageMixin, OwnFormView):
    """Adds a customer; with `?from=2026-000042`, the form has the customer of that invoice."""

    template_name = "invoices/customer.html"
    form_class = NewCustomerForm

    @cached_property
    def customer(self) -> Customer | None:
        """The customer of the invoice `?from=`."""
        label = self.request.GET.get("from")
        return find_invoice(self.account, label).customer if label else None

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """The form, or the customer if the address book has this name."""
        if self.customer and (known := book.customer_named(self.account, self.customer.name)):
            text = _("Customer %(number)s of your address book has this name.")
            where = ("customer", known.id)
            return self.redirect(text, *where, level=messages.INFO, number=known.number)
        return super().get(request, *args, **kwargs)

    def get_initial(self) -> dict[str, object]:
        return vars(self.customer) if self.customer else {"country": self.profile.country}

    def act(self, form: NewCustomerForm) -> HttpResponse:
        customer = Customer(**{name: form.cleaned_data[name] or "" for name in _FIELDS})
        request_id = form.cleaned_data["request_id"]
        item = book.add_customer(self.account, customer, request_id=request_id)
        text = _("Customer %(number)s was added.")
        return self.redirect(text, "customer_list", number=item.number)


class CustomerNamesView(OwnInvoicesMixin, LongPageMixin, View):
    """The customers that match `?name=`, for the form of an invoice: JSON with the ids by name."""

    def get(self, request: HttpRequest) -> HttpResponse:
        name = request.GET.get("name", "")[:NAME_MAX_LENGTH]
        found = book.list_customers(self.account, name, limit=SUGGESTED) if name.strip() else ()
        return JsonResponse(
            {f"{customer.name} ({customer.number})": customer.id for customer in found}
        )


class CustomerFormView(OwnFormView):
    """A form about one customer, as the page showed it."""

    @cached_property
    def item(self) -> CustomerItem:
        return CustomerItem.get(self.account, str(self.kwargs["id"]))

    def get_form_kwargs(self) -> dict[str, object]:
        # A copy, because the form sets what was typed, and the page shows what is stored, too.
        return super().get_form_kwargs() | {
            "instance": CustomerItem.from_raw_data(self.item.stored)
        }

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        return super().get_context_data(item=self.item, **kwargs)


class CustomerView(LongPageMixin, CustomerFormView):
    """Changes a customer."""

    template_name = "invoices/customer.html"
    form_class = CustomerForm

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        """Add the newest invoices to a customer of this name, as many as one search finds."""
        if self.request.method == "GET":
            today = self.today
            page = search_invoices(
                self.account, today.year, customer=self.item.name, exact=True, today=today
            )
            kwargs |= {"page": page, "found": page.invoices}
            kwargs["figures"] = [figure(state, page.invoices) for state in ("open", "overdue")]
        return super().get_context_data(**kwargs)

    def act(self, form: CustomerForm) -> HttpResponse:
        if form.try_save() is None:
            return self.form_invalid(form)
        return self.redirect(_("The customer was saved."), "customer_list")


class CustomerDeleteView(CustomerFormView):
    """Deletes a customer after a confirmation."""

    template_name = "invoices/customer_delete.html"
    form_class = DeleteForm

    def act(self, form: DeleteForm) -> HttpResponse:
        try:
            form.instance.delete()
        except CustomerItem.Stale as error:
            form.add_refusal(error)
            return self.form_invalid(form)
        return self.redirect(_("The customer was deleted."), "customer_list")
