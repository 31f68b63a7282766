"""The pages that are measured; the others only have an address, because templates link to them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path, reverse_lazy
from django.utils.timezone import localdate
from django.views.generic import FormView, TemplateView

from accounts.forms import ProfileForm, SignInForm, SignUpForm
from benchmarks.on_postgres.models import Invoice, User, issue
from invoices.pages.forms import InvoiceForm, ListForm
from invoices.store.lists import PAGE_SIZE, Page, sums_of

#: What the site says about the same invoice: `invoices.output.einvoices.missing` takes no row.
LACKS = ["The seller’s country", "The customer’s country", "The due date or the payment terms"]
#: How many invoices the start page lists (`invoices.pages.views`, which has other users).
RECENT = 5


class SignInView(LoginView):
    authentication_form = SignInForm

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        remembered = form.cleaned_data["remember_me"]
        self.request.session.set_expiry(settings.SESSION_COOKIE_AGE if remembered else None)
        return response


class SignUpView(FormView):
    template_name = "accounts/signup.html"
    form_class = SignUpForm
    success_url = reverse_lazy("profile")

    def form_valid(self, form: SignUpForm) -> HttpResponse:
        # Its columns take no NULL.
        values = {name: value or "" for name, value in form.account_values().items()}
        # A row has none: two equal sign-ups meet at the unique columns.
        del values["request_id"]
        user = User.objects.create_user(**values)
        login(self.request, user)
        messages.success(self.request, "Welcome! Your account is ready.")
        return super().form_valid(form)


class ProfileView(LoginRequiredMixin, FormView):
    template_name = "accounts/profile.html"
    form_class = ProfileForm

    def get_initial(self) -> dict[str, Any]:
        return {name: getattr(self.request.user, name) for name in ProfileForm.base_fields}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(part="profile", **kwargs)
        return context | {"groups": context["form"].fields_by_group("profile")}


class HomeView(TemplateView):
    template_name = "home.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if not self.request.user.is_authenticated:
            return super().get_context_data(**kwargs)
        own = Invoice.objects.filter(owner=self.request.user)
        today = localdate()
        newest = own.order_by("-year", "-number")
        unpaid: Any = list(
            newest.filter(paid_on=None, credited_by=None, status="issued")[:PAGE_SIZE]
        )
        overdue = [item for item in unpaid if item.due_date and item.due_date < today]
        return super().get_context_data(
            recent=list(newest[:RECENT]),
            overdue=overdue[:RECENT],
            figures=[
                {"state": state, "title": state.title(), "invoices": found, "sums": sums_of(found)}
                for state, found in (("open", unpaid), ("overdue", overdue))
            ],
            since=today,
            **kwargs,
        )


class InvoiceListView(LoginRequiredMixin, TemplateView):
    template_name = "invoices/invoice_list.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        year = localdate().year
        found = Invoice.objects.filter(owner=self.request.user, year=year).order_by("-number")
        rows = list(found[: PAGE_SIZE + 1])
        before = rows[PAGE_SIZE - 1].number if len(rows) > PAGE_SIZE else None
        shown: Any = rows[:PAGE_SIZE]
        return super().get_context_data(
            form=ListForm(self.request.GET),
            page=Page(shown, before, len(shown), []),
            year=year,
            is_first_page=True,
            earlier_year=year - 1,
            later_year=year + 1,
            **kwargs,
        )


class InvoiceView(LoginRequiredMixin, TemplateView):
    template_name = "invoices/invoice.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        year, number = map(int, kwargs["label"].split("-"))
        owner = self.request.user
        invoice: Any = get_object_or_404(Invoice, owner=owner, year=year, number=number)
        return super().get_context_data(
            invoice=invoice,
            record=invoice.record(localdate()),
            may_void=settings.INVOICES_ALLOW_VOID,
            einvoice_lacks=LACKS,
            **kwargs,
        )


class InvoiceNewView(LoginRequiredMixin, FormView):
    template_name = "invoices/invoice_new.html"
    form_class = InvoiceForm

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"user": self.request.user}

    def form_valid(self, form: InvoiceForm) -> HttpResponse:
        request_id = form.cleaned_data["request_id"]
        owner: Any = self.request.user
        invoice = issue(form.draft(), owner, form.seller, form.issued_on, request_id)
        messages.success(self.request, f"Invoice {invoice.label} was issued.")
        return redirect("invoice", invoice.label)


def elsewhere(_request: HttpRequest, **_named: Any) -> HttpResponse:
    """A page that is not measured."""
    return HttpResponse("ok")


_LINKED = [
    *("logout", "set_language", "password_reset", "username_reminder", "username_change"),
    *("email_confirm_send", "email_change", "email_change_cancel", "password_change"),
    *("account_sessions", "account_export", "account_delete"),
    *("customer_list", "customer_new", "invoice_preview", "how_it_works"),
    *("customer_names", "profile_business", "profile_invoicing", "invoice_preview_pdf"),
    "invoice_new_preview",
]
_LINKED_OF_INVOICES = [
    *("invoice_pdf", "invoice_xml", "invoice_credit", "invoice_void", "invoice_paid"),
    *(
        "invoice_unpaid",
        "invoice_send",
        "invoices_csv",
        "invoices_lines",
        "invoices_bookings",
        "invoices_zip",
    ),
]

urlpatterns = [
    path("", HomeView.as_view(), name="home"),
    path("livez", elsewhere),
    path("accounts/login/", SignInView.as_view(), name="login"),
    path("accounts/signup/", SignUpView.as_view(), name="signup"),
    path("accounts/profile/", ProfileView.as_view(), name="profile"),
    path("invoices/", InvoiceListView.as_view(), name="invoice_list"),
    path("invoices/new/", InvoiceNewView.as_view(), name="invoice_new"),
    path("invoices/<str:label>/", InvoiceView.as_view(), name="invoice"),
    *(path(f"accounts/{name}/", elsewhere, name=name) for name in _LINKED),
    *(path(f"invoices/<str:label>/{name}/", elsewhere, name=name) for name in _LINKED_OF_INVOICES),
]
