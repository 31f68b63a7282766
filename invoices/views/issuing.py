"""The form of a new invoice."""

from __future__ import annotations

import json
import logging
from typing import Any

from babel.numbers import get_currency_precision
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.formats import date_format
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.generic import FormView

from dynamo.exceptions import Unavailable
from dynamo.middleware import as_unavailable
from invoices.documents import DEFAULT_LANGUAGE
from invoices.exceptions import DateTooEarly, RequestIdReused
from invoices.forms import (
    InvoiceForm,
    blank_line_after,
    line_values_of,
    typed_lines,
    typed_values,
    values_of,
)
from invoices.issuing import issue
from invoices.money import currency_choices
from invoices.rules import MAX_LINES, check_may_issue, must_confirm, seller_of
from invoices.views.pages import OwnInvoicesMixin
from sequences.exceptions import DamagedSeries, ItemTooLarge, SequenceError
from web.focus import FocusFirstErrorMixin

#: Of most currencies.
USUAL_DECIMALS = 2

logger = logging.getLogger(__name__)


class InvoiceNewView(OwnInvoicesMixin, FocusFirstErrorMixin, FormView):
    """Issues an invoice. Lines come and go by the page's script, or by buttons of the form."""

    template_name = "invoices/invoice_new.html"
    form_class = InvoiceForm
    http_method_names = ("get", "head", "options", "post")

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """A form with one line; or that of an invoice which is issued once more."""
        values, lines = {}, []
        if label := request.GET.get("from"):
            model = self.find(label)
            values, lines = values_of(model), line_values_of(model)
        return self.show({**values, "request_id": InvoiceForm.new_request_id()}, lines)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Issue it, or show the form with a line more or less."""
        lines = typed_lines(request.POST)
        if request.POST.keys() & {"add_line", "enter"}:
            if len(lines) < MAX_LINES:
                lines.append(blank_line_after(lines))
            return self.show(typed_values(request.POST), lines, focus=len(lines) - 1)
        if number := request.POST.get("remove_line"):
            at = next((at for at in range(len(lines)) if str(at) == number), len(lines))
            del lines[at : at + 1]
            return self.show(typed_values(request.POST), lines, focus=max(0, at - 1))
        return super().post(request, *args, **kwargs)

    def show(
        self, values: dict[str, Any], lines: list[dict[str, Any]], focus: int | None = None
    ) -> HttpResponse:
        """The form with these values, unchecked, and the cursor in the line number `focus`."""
        form = InvoiceForm(initial=values, lines=lines, seller=seller_of(self.request.user))
        if focus is not None:
            line = form.lines.forms[min(focus, len(form.lines.forms) - 1)]
            line.fields["description"].widget.attrs["autofocus"] = True
        return self.render_to_response(self.get_context_data(form=form))

    def get_form_kwargs(self) -> dict[str, Any]:
        """The seller as the profile has it now."""
        return {**super().get_form_kwargs(), "seller": seller_of(self.request.user)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the script counts in: the decimals of those currencies that have not two.

        And whether the address must be confirmed first.
        """
        decimals = {code: get_currency_precision(code) for code, _name in currency_choices()}
        unusual = {code: count for code, count in decimals.items() if count != USUAL_DECIMALS}
        return super().get_context_data(
            decimals=json.dumps(unusual), must_confirm=must_confirm(self.request.user), **kwargs
        )

    def form_valid(self, form: InvoiceForm) -> HttpResponse:
        """Issue it; the same form sent again leads to the same invoice."""
        if must_confirm(self.request.user):
            return self.form_invalid(form)
        try:
            invoice = issue(
                form.draft(),
                account=self.account,
                seller=form.seller,
                request_id=form.cleaned_data["request_id"],
                language=get_language() or DEFAULT_LANGUAGE,
            )
        except SequenceError as error:
            form.add_error(None, _refusal(error))
            if isinstance(error, RequestIdReused):
                form.renew_request_id()
            return self.form_invalid(form)
        except Unavailable as error:
            # A page with a new request id would lead to a second invoice; this one keeps its own.
            form.add_error(
                None,
                _(
                    "The database did not answer in time, so the invoice may be issued all the "
                    "same. Send this form once more: it is issued only once."
                ),
            )
            return as_unavailable(self.request, self.form_invalid(form), error)
        messages.success(
            self.request, _("Invoice %(number)s is issued.") % {"number": invoice.label}
        )
        return redirect("invoice", invoice.label)

    def form_invalid(self, form: InvoiceForm) -> HttpResponse:
        """Show the form again; with a request id that is still good."""
        if "request_id" in form.errors:
            form.renew_request_id()
        try:
            check_may_issue(self.request.user)
        except ValidationError as error:
            form.add_error(None, error)
        return super().form_invalid(form)


def _refusal(error: SequenceError) -> str:
    """Why an invoice was not issued, to whoever wrote it."""
    if isinstance(error, RequestIdReused):
        return _(
            "This form has issued invoice %(number)s already, with other contents. To issue "
            "another invoice, send it once more."
        ) % {"number": error.number}
    if isinstance(error, DateTooEarly):
        return _("Your last invoice is dated %(last)s, and none can be issued before that day.") % {
            "last": date_format(error.last)
        }
    if isinstance(error, ItemTooLarge):
        return _(
            "The invoice is too long: %(size)s KB of at most %(limit)s KB. Shorten its lines, or "
            "make two invoices of it."
        ) % {"size": -(-error.size_bytes // 1024), "limit": error.limit_bytes // 1024}
    if isinstance(error, DamagedSeries):
        logger.error("%s", error)
        return _(
            "Your invoices of this year contradict their own count, so nothing was issued. "
            "Please tell whoever runs this site."
        )
    raise error
