"""The pages of the address book. They show the customers of the signed-in account."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.views import View
from django.views.generic import FormView, TemplateView

from accounts.limits.client_address import counted_client
from accounts.pages import KeepFormMixin, SignedInFormMixin
from invoices.document.invoice import NAME_MAX_LENGTH, Customer
from invoices.exceptions import StaleCustomer, UnknownCustomer
from invoices.models import CustomerItem
from invoices.pages.customer_forms import CustomerForm, SearchForm, VersionForm, form_values_of
from invoices.pages.views import OwnInvoicesMixin, figure, previews
from invoices.store.customers import (
    add_customer,
    change_customer,
    customer_named,
    customer_of,
    delete_customer,
    find_customer,
    list_customers,
)
from invoices.store.lists import Page, search_invoices
from web.focus import FocusFirstErrorMixin

#: How many customers the form of an invoice suggests.
SUGGESTED = 20


class CustomerListView(OwnInvoicesMixin, TemplateView):
    template_name = "invoices/customer_list.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        form = SearchForm(self.request.GET)
        if not form.is_valid():
            raise Http404("The query of the list is not valid.")
        name = form.cleaned_data["name"]
        return super().get_context_data(
            form=form, name=name, found=list_customers(self.account, name), **kwargs
        )


class CustomerNewView(
    SignedInFormMixin, KeepFormMixin, OwnInvoicesMixin, FocusFirstErrorMixin, FormView
):
    """Adds a customer; with `?from=2026-000042`, the form has the customer of that invoice."""

    template_name = "invoices/customer.html"
    form_class = CustomerForm
    http_method_names = ("get", "head", "options", "post")

    @cached_property
    def customer(self) -> Customer | None:
        """The customer of the invoice `?from=`."""
        label = self.request.GET.get("from")
        return self.find(label).customer if label else None

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form, or the customer if the address book has this name."""
        if self.customer and (known := customer_named(self.account, self.customer.name)):
            messages.info(
                request,
                _("Customer %(number)s of your address book has this name.")
                % {"number": known.number},
            )
            return redirect("customer", known.id)
        return super().get(request, *args, **kwargs)

    def get_initial(self) -> dict[str, Any]:
        values = form_values_of(self.customer or Customer("", country=self.user.country or ""))
        return values | {"request_id": CustomerForm.new_request_id()}

    def form_valid(self, form: CustomerForm) -> HttpResponse:
        item = add_customer(
            self.account, form.customer(), request_id=form.cleaned_data["request_id"]
        )
        messages.success(
            self.request, _("Customer %(number)s was added.") % {"number": item.number}
        )
        return redirect("customer_list")

    def form_invalid(self, form: CustomerForm) -> HttpResponse:
        if "request_id" in form.errors:
            form.renew_request_id()
        return super().form_invalid(form)


class CustomerNamesView(OwnInvoicesMixin, View):
    """The customers that match `?name=`, as JSON, for the form of an invoice: id by name."""

    http_method_names = ("get", "options")

    def get(self, request: HttpRequest) -> HttpResponse:
        if not previews.take(counted_client(request)):
            return HttpResponse(status=429, headers={"Retry-After": str(previews.seconds)})
        name = request.GET.get("name", "")[:NAME_MAX_LENGTH]
        found = list_customers(self.account, name, limit=SUGGESTED) if name.strip() else None
        customers = found.customers if found else []
        return JsonResponse({f"{each.name} ({each.number})": each.id for each in customers})


class CustomerMixin(OwnInvoicesMixin):
    """A page about one customer."""

    kwargs: dict[str, Any]

    @cached_property
    def item(self) -> CustomerItem:
        try:
            return find_customer(self.account, str(self.kwargs["id"]))
        except UnknownCustomer as error:
            raise Http404(str(error)) from error


class CustomerView(SignedInFormMixin, KeepFormMixin, CustomerMixin, FocusFirstErrorMixin, FormView):
    """Changes a customer."""

    template_name = "invoices/customer.html"
    form_class = CustomerForm
    http_method_names = ("get", "head", "options", "post")

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # Read first, because the page needs it if the database does not answer later.
        self.item  # noqa: B018
        return super().post(request, *args, **kwargs)

    def get_initial(self) -> dict[str, Any]:
        return form_values_of(customer_of(self.item)) | {
            "request_id": CustomerForm.new_request_id(),
            "version": self.item.version,
        }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        page = self.invoices() if self.request.method == "GET" else None
        found = page.invoices if page else []
        figures = [figure(state, found) for state in ("open", "overdue")]
        return super().get_context_data(
            item=self.item, page=page, found=found, figures=figures, **kwargs
        )

    def invoices(self) -> Page:
        """The newest invoices to a customer of this name; as many as a search finds at once."""
        return search_invoices(
            self.account,
            self.today.year,
            customer=self.item.name,
            exact=True,
            today=self.today,
        )

    def form_valid(self, form: CustomerForm) -> HttpResponse:
        # The condition is about what the page showed, not about what is stored now.
        self.item.expect_version(form.shown_version())
        try:
            change_customer(self.item, form.customer())
        except StaleCustomer:
            form.add_error(
                None,
                _(
                    "This customer was changed or deleted meanwhile. Nothing was saved. Open the "
                    "customer again and repeat your changes."
                ),
            )
            return self.form_invalid(form)
        messages.success(self.request, _("The customer was saved."))
        return redirect("customer_list")


class CustomerDeleteView(SignedInFormMixin, CustomerMixin, FormView):
    """Asks, and deletes a customer as the page showed it."""

    template_name = "invoices/customer_delete.html"
    form_class = VersionForm
    http_method_names = ("get", "head", "options", "post")

    def get_initial(self) -> dict[str, Any]:
        return {"version": self.item.version}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(item=self.item, **kwargs)

    def form_valid(self, form: VersionForm) -> HttpResponse:
        self.item.expect_version(form.shown_version())
        try:
            delete_customer(self.item)
        except StaleCustomer:
            messages.error(
                self.request, _("The customer was changed meanwhile. Nothing was deleted.")
            )
            return redirect("customer", self.item.id)
        messages.success(self.request, _("The customer was deleted."))
        return redirect("customer_list")
