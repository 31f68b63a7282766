"""The pages that change what became of an invoice: it is voided, credited, or paid."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.views import View

from dynamo import Unavailable
from dynamo.middleware import as_unavailable
from invoices.exceptions import NotPaid, UnknownInvoice
from invoices.pages.forms import CreditForm, PaidForm, VoidForm
from invoices.pages.views import OwnFormView, OwnInvoicesMixin, refusal_text
from invoices.store.issuing import check_may_issue
from invoices.store.records import Record, find_record
from invoices.store.settlement import PAID_ON, credit, mark_paid, mark_unpaid, void
from sequences import SequenceError


class ChangeView(OwnFormView):
    """Asks for one value and makes one change of an invoice. Subclasses make it."""

    @cached_property
    def record(self) -> Record:
        return find_record(self.account, self.kwargs["label"], self.today)

    @property
    def is_possible(self) -> bool:
        return self.record.can_be_canceled

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form. If the change is not possible, the invoice's page, which shows why."""
        if not self.is_possible:
            return redirect("invoice", self.record.invoice.label)
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            invoice=self.record.invoice,
            record=self.record,
            may_void=settings.INVOICES_ALLOW_VOID,
            **kwargs,
        )

    def change(self, label: str, form: Form) -> HttpResponse:
        """Make the change, and lead to the page of the invoice, with a message."""
        raise NotImplementedError

    def form_valid(self, form: Form) -> HttpResponse:
        try:
            return self.change(self.kwargs["label"], form)
        except ValidationError as error:
            form.add_error(None, error)
        except UnknownInvoice:
            raise
        except SequenceError as error:
            # The only field: an error stands where the visitor types.
            form.add_error(next(iter(form.fields)), refusal_text(error))
        except Unavailable as error:
            text = _(
                "The database did not answer in time, so we do not know whether this was done. "
                "Send the form again: it is done only once."
            )
            form.add_error(None, text)
            return as_unavailable(self.request, self.form_invalid(form), error)
        return self.form_invalid(form)


class InvoiceVoidView(ChangeView):
    """Asks for the reason, and voids an invoice. 404 if the site does not allow it."""

    template_name = "invoices/invoice_void.html"
    form_class = VoidForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated and not settings.INVOICES_ALLOW_VOID:
            raise Http404("Invoices cannot be voided: INVOICES_ALLOW_VOID is off.")
        return super().dispatch(request, *args, **kwargs)

    def change(self, label: str, form: Form) -> HttpResponse:
        void(self.account, label, form.cleaned_data["reason"])
        return self.redirect(_("Invoice %(number)s was voided."), "invoice", label, number=label)


class InvoiceCreditView(ChangeView):
    """Asks for the reason, issues the credit note, and leads to its page."""

    template_name = "invoices/invoice_credit.html"
    form_class = CreditForm

    def change(self, label: str, form: Form) -> HttpResponse:
        check_may_issue(self.user)
        reason, zone = form.cleaned_data["reason"], self.user.time_zone
        note = credit(self.account, label, reason, time_zone=zone)
        text = _("Invoice %(number)s was credited by credit note %(credit_note)s.")
        return self.redirect(text, "invoice", note.label, number=label, credit_note=note.label)


class InvoicePaidView(ChangeView):
    """Asks for the day, by default today, and marks an invoice as paid."""

    template_name = "invoices/invoice_paid.html"
    form_class = PaidForm

    @property
    def is_possible(self) -> bool:
        return self.record.can_be_paid

    def get_initial(self) -> dict[str, Any]:
        return {"paid_on": self.today.isoformat()}

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"today": self.today}

    def change(self, label: str, form: Form) -> HttpResponse:
        mark_paid(self.account, label, form.cleaned_data["paid_on"])
        text = _("Invoice %(number)s was marked as paid.")
        return self.redirect(text, "invoice", label, number=label)


class InvoiceUnpaidView(OwnInvoicesMixin, View):
    """Undoes the payment of the day that the page showed."""

    http_method_names = ("get", "head", "options", "post")

    def get(self, request: HttpRequest, label: str) -> HttpResponse:
        """The invoice's page: a sign-in leads here if the session had ended."""
        return redirect("invoice", label)

    def post(self, request: HttpRequest, label: str) -> HttpResponse:
        find_record(self.account, label)
        try:
            mark_unpaid(self.account, label, PAID_ON.clean(request.POST.get("paid_on", "")))
        except (ValidationError, NotPaid):
            text = _("The payment was changed meanwhile. Please look at it again.")
            return self.redirect(text, "invoice", label, level=messages.ERROR)
        text = _("Invoice %(number)s is no longer marked as paid.")
        return self.redirect(text, "invoice", label, number=label)
