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
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.translation import gettext as _, gettext_lazy
from django.views import View
from django.views.generic import FormView

from accounts.pages import SignedInFormMixin
from dynamo import Unavailable
from dynamo.middleware import as_unavailable
from invoices.exceptions import (
    AlreadyCredited,
    AlreadyPaid,
    AlreadyVoided,
    IsCreditNote,
    NotPaid,
    UnknownInvoice,
)
from invoices.pages.forms import CreditForm, PaidForm, VoidForm
from invoices.pages.views import OwnInvoicesMixin, refusal_text
from invoices.store.issuing import check_may_issue
from invoices.store.records import Record
from invoices.store.settlement import PAID_ON, credit, mark_paid, mark_unpaid, void
from sequences import SequenceError
from web.focus import FocusFirstErrorMixin


class ChangeView(SignedInFormMixin, OwnInvoicesMixin, FocusFirstErrorMixin, FormView):
    """Asks for one value and makes one change of an invoice. Subclasses make it."""

    http_method_names = ("get", "head", "options", "post")
    #: What the form says if the change may have been made.
    unanswered: Any = gettext_lazy(
        "The database did not answer in time, so we do not know whether this was done. Send the "
        "form again: it is done only once."
    )

    @cached_property
    def record(self) -> Record:
        return self.find_record(self.kwargs["label"])

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

    def change(self, label: str, form: Form) -> str:
        """Make the change. Return the label of the invoice to show then, with a message."""
        raise NotImplementedError

    def form_valid(self, form: Form) -> HttpResponse:
        try:
            shown = self.change(self.kwargs["label"], form)
        except UnknownInvoice as error:
            raise Http404(str(error)) from error
        except ValidationError as error:
            form.add_error(None, error)
        except SequenceError as error:
            # The only field: an error stands where the visitor types.
            form.add_error(next(iter(form.fields)), _reason(error))
        except Unavailable as error:
            form.add_error(None, self.unanswered)
            return as_unavailable(self.request, self.form_invalid(form), error)
        else:
            return redirect("invoice", shown)
        return self.form_invalid(form)


class InvoiceVoidView(ChangeView):
    """Asks for the reason, and voids an invoice. 404 if the site does not allow it."""

    template_name = "invoices/invoice_void.html"
    form_class = VoidForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated and not settings.INVOICES_ALLOW_VOID:
            raise Http404("Invoices cannot be voided: INVOICES_ALLOW_VOID is off.")
        return super().dispatch(request, *args, **kwargs)

    def change(self, label: str, form: Form) -> str:
        void(self.account, label, form.cleaned_data["reason"])
        messages.success(self.request, _("Invoice %(number)s was voided.") % {"number": label})
        return label


class InvoiceCreditView(ChangeView):
    """Asks for the reason, issues the credit note, and leads to its page."""

    template_name = "invoices/invoice_credit.html"
    form_class = CreditForm
    unanswered = gettext_lazy(
        "The database did not answer in time. The credit note may have been issued. Send the form "
        "again: it is issued only once."
    )

    def change(self, label: str, form: Form) -> str:
        check_may_issue(self.user)
        note = credit(
            self.account, label, form.cleaned_data["reason"], time_zone=self.user.time_zone
        )
        messages.success(
            self.request,
            _("Invoice %(number)s was credited by credit note %(credit_note)s.")
            % {"number": label, "credit_note": note.label},
        )
        return note.label


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

    def change(self, label: str, form: Form) -> str:
        mark_paid(self.account, label, form.cleaned_data["paid_on"])
        messages.success(
            self.request, _("Invoice %(number)s was marked as paid.") % {"number": label}
        )
        return label


class InvoiceUnpaidView(OwnInvoicesMixin, View):
    """Undoes the payment of the day that the page showed."""

    http_method_names = ("get", "head", "options", "post")

    def get(self, request: HttpRequest, label: str) -> HttpResponse:
        """The invoice's page: a sign-in leads here if the session had ended."""
        return redirect("invoice", label)

    def post(self, request: HttpRequest, label: str) -> HttpResponse:
        self.find(label)
        try:
            mark_unpaid(self.account, label, PAID_ON.clean(request.POST.get("paid_on", "")))
        except (ValidationError, NotPaid):
            messages.error(
                request, _("The payment was changed meanwhile. Please look at it again.")
            )
        else:
            messages.success(
                request, _("Invoice %(number)s is no longer marked as paid.") % {"number": label}
            )
        return redirect("invoice", label)


def _reason(error: SequenceError) -> str:
    """Why the invoice was not changed."""
    if isinstance(error, AlreadyVoided):
        return _("The invoice was already voided: %(reason)s") % {"reason": error.reason}
    if isinstance(error, AlreadyCredited):
        return _("The invoice was already credited. Its page shows the credit note.")
    if isinstance(error, AlreadyPaid):
        return _("The invoice is already marked as paid on %(date)s.") % {
            "date": date_format(error.paid_on)
        }
    if isinstance(error, IsCreditNote):
        return _("A credit note cannot be voided, credited, or marked as paid.")
    return refusal_text(error)
