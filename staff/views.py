"""Pages of the admin other than those of models: invoices, a session, a lock, audit log, reports.

The classes name the costs in addition to the requests of every page.
"""

import hashlib
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.views import View
from django.views.generic import FormView, TemplateView

from accounts.models import User
from accounts.pages.base import FormPageMixin, SignedInFormMixin
from dynamo import DamagedItem, admin
from dynamo.admin.actions import REASON
from dynamo.admin.models import list_entries, month_of
from invoices.document.invoice import Invoice
from invoices.output.pdf import pdf_of
from invoices.pages.base import LongPageMixin, OwnInvoicesMixin, shown_pdf
from invoices.pages.views import InvoiceListView
from invoices.store.records import find_invoice
from locks import BadLockName, LockChanged, UnknownLock, registry
from staff.reports import KINDS, last_reports

#: The `staff.sites.StaffSite`.
SITE: Any = admin.site

_MONTH = re.compile(r"(20\d\d)-(0[1-9]|1[0-2])")


class ReportView(TemplateView):
    """Costs 1 request."""

    template_name = "staff/report.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, object]:
        if kwargs["kind"] not in KINDS:
            raise Http404
        [report] = last_reports(KINDS[kwargs["kind"]])
        return super().get_context_data(report=report, **kwargs)


class AuditLogView(TemplateView):
    """The audit log of a month, newest first. Costs 1 request."""

    template_name = "staff/audit_log.html"

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        this_month = month_of(datetime.now(UTC))
        month = self.request.GET.get("month", this_month)
        match = _MONTH.fullmatch(month)
        if match is None:
            raise Http404
        first = date(int(match[1]), int(match[2]), 1)
        log = list_entries(month, before=self.request.GET.get("before"))
        return super().get_context_data(
            month=first,
            earlier=(first - timedelta(days=1)).strftime("%Y-%m"),
            later=(first + timedelta(days=31)).strftime("%Y-%m") if month < this_month else None,
            log=log,
            **kwargs,
        )


class AccountInvoicesMixin(OwnInvoicesMixin):
    """A page that shows invoices of the account of the URL, read-only. Costs 3 requests, a list 4.

    The account may be deleted. Before invoices are shown, an entry in the audit log is written.
    """

    kwargs: dict[str, Any]

    @property
    def account(self) -> str:
        return str(self.kwargs["pk"])

    def opened(self, label: str) -> Invoice:
        """The invoice, whose opening is recorded. Raises Http404."""
        try:
            invoice = find_invoice(self.account, label)
        except DamagedItem as error:
            raise Http404(str(error)) from error
        self.owner = SITE.record_opening(self.request, "openInvoices", self.account, label)
        return invoice


class AccountInvoicesView(AccountInvoicesMixin, InvoiceListView):
    """The invoices of a year, newest first."""

    template_name = "staff/account_invoices.html"

    def get_context_data(self, **kwargs: object) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        if context["page"].invoices:
            year = str(context["year"])
            self.owner = SITE.record_opening(self.request, "openInvoices", self.account, year)
        return context


class AccountInvoiceView(AccountInvoicesMixin, TemplateView):
    template_name = "staff/account_invoice.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, object]:
        return super().get_context_data(invoice=self.opened(kwargs["label"]), **kwargs)


class AccountInvoicePdfView(AccountInvoicesMixin, LongPageMixin, View):
    def get(self, request: HttpRequest, pk: UUID, label: str) -> HttpResponse:
        """The PDF, which the browser shows."""
        return shown_pdf(pdf_of(self.opened(label)), label)


class BreakLockForm(forms.Form):
    """The `holder` that the page showed, a reason, and the password, as before other actions.

    A later holder's lock must not be broken.
    """

    holder = forms.CharField(widget=forms.HiddenInput, max_length=64)

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= SITE.get_model_admin(User).confirm_fields(request, dangerous=True)


class LockView(SignedInFormMixin, FormPageMixin, FormView):
    """The lock `?name=`, and the form that breaks it. Costs 1 request.

    The name is not part of the path because it may be any text, even `..`.
    """

    template_name = "staff/lock.html"
    form_class = BreakLockForm

    @cached_property
    def lock(self) -> registry.LockView:
        try:
            return registry.look(self.request.GET.get("name", ""))
        except (BadLockName, UnknownLock) as error:
            raise Http404 from error

    @property
    def _holder(self) -> str:
        """A short text that is the same for all views of one lease of one holder."""
        return hashlib.sha256(repr(self.lock.holding).encode()).hexdigest()

    def get_form_kwargs(self) -> dict[str, object]:
        initial = {"holder": self._holder}
        return {**super().get_form_kwargs(), "request": self.request, "initial": initial}

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        is_silent = self.lock.is_silent(datetime.now(UTC))
        return super().get_context_data(lock=self.lock, is_silent=is_silent, **kwargs)

    def form_valid(self, form: BreakLockForm) -> HttpResponse:
        """Break the lock, or show the current holder."""
        try:
            if form.cleaned_data["holder"] != self._holder:
                raise LockChanged(self.lock.name)
            done = SITE.break_lock(self.request, self.lock, form.cleaned_data[REASON])
        except LockChanged:
            del self.lock
            form.data = {**dict(form.data.items()), "holder": self._holder}
            form.add_error(
                None, _("The lock now has another holder, as shown here. It was not broken.")
            )
            return self.form_invalid(form)
        except UnknownLock as error:
            raise Http404 from error
        text = _("The lock is now free.") if done else _("The lock was already free.")
        messages.success(self.request, text)
        # Breaking a claim deletes its item.
        is_gone = self.lock.state is registry.State.CLAIMED
        return redirect("admin:index" if is_gone else self.request.get_full_path())
