"""The form that voids an invoice."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.views.generic import FormView

from invoices.documents import Invoice
from invoices.exceptions import AlreadyVoided, UnknownInvoice
from invoices.forms import VoidForm
from invoices.records import void
from invoices.views.pages import OwnInvoicesMixin
from web.focus import FocusFirstErrorMixin


class InvoiceVoidView(OwnInvoicesMixin, FocusFirstErrorMixin, FormView):
    """Asks why, and voids an invoice."""

    template_name = "invoices/invoice_void.html"
    form_class = VoidForm
    http_method_names = ("get", "head", "options", "post")

    @cached_property
    def invoice(self) -> Invoice:
        """The invoice as it is stored."""
        return self.find(self.kwargs["label"])

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form; where nothing is left to do, the invoice, which says why."""
        if self.invoice.is_voided:
            return redirect("invoice", self.invoice.label)
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The invoice."""
        return super().get_context_data(invoice=self.invoice, **kwargs)

    def form_valid(self, form: VoidForm) -> HttpResponse:
        """Void it."""
        label = self.kwargs["label"]
        try:
            void(self.account, label, form.cleaned_data["reason"])
        except UnknownInvoice as error:
            raise Http404(str(error)) from error
        except AlreadyVoided as error:
            form.add_error(
                "reason",
                _("The invoice is voided already: %(reason)s") % {"reason": error.reason},
            )
            return self.form_invalid(form)
        messages.success(self.request, _("Invoice %(number)s is voided.") % {"number": label})
        return redirect("invoice", label)
