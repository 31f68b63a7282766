"""The page that sends an invoice by email."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext as _, gettext_lazy

from accounts.clients import counted_client
from accounts.exceptions import TooManyAttempts
from accounts.limits.middleware import in_words
from accounts.pages.base import KeepFormMixin
from invoices.exceptions import AlreadyVoided, InvoiceError, SendingReused, TooManySendings
from invoices.output.sending import MESSAGE, TO, send_invoice
from invoices.pages.views import OwnFormView
from invoices.store.records import Record, find_record
from web.requestids import RequestIdForm

logger = logging.getLogger(__name__)


#: Why the mail did not go out, by the outcome. The form then has a new request id.
_NOT_SENT = {
    "refused": gettext_lazy("The mail server refused the mail to %(to)s. Check the address."),
    "failed": gettext_lazy(
        "The mail server cannot be reached, so nothing was sent. Try again later."
    ),
    "unknown": gettext_lazy(
        "It is not known whether the mail to %(to)s was sent. If you send this form again, it may "
        "arrive twice."
    ),
}
#: Why nothing was sent.
_REFUSALS: dict[type[InvoiceError], Any] = {
    AlreadyVoided: gettext_lazy("A voided invoice cannot be sent."),
    SendingReused: gettext_lazy(
        "This form has already sent the invoice to %(to)s. To send it to another address, too, "
        "send the form again."
    ),
    TooManySendings: gettext_lazy(
        "This invoice was sent too often. You can send it again in two days."
    ),
}


class SendForm(RequestIdForm):
    """The recipient of an invoice, and the message."""

    request_id_salt = "invoices.sending"
    request_id_refused = gettext_lazy(
        "This form was open for more than a day, or it is not from this site. Nothing was sent. "
        "Send it again."
    )

    to = TO.form_field()
    message = MESSAGE.form_field()


class InvoiceSendView(KeepFormMixin, OwnFormView):
    """Asks for the recipient and a message, and sends the invoice."""

    template_name = "invoices/invoice_send.html"
    form_class = SendForm

    @cached_property
    def record(self) -> Record:
        return find_record(self.account, self.kwargs["label"])

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form. If the invoice is voided, its page, which shows that."""
        if self.record.invoice.is_voided:
            return redirect("invoice", self.record.invoice.label)
        return super().get(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # Read first, because the page needs it if the database does not answer later.
        self.record  # noqa: B018
        return super().post(request, *args, **kwargs)

    def get_initial(self) -> dict[str, Any]:
        to = self.record.invoice.customer.email
        return {"to": to, "request_id": SendForm.new_request_id()}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            invoice=self.record.invoice,
            reply_to=self.user.email,
            must_confirm=not self.user.is_confirmed,
            **kwargs,
        )

    def form_valid(self, form: SendForm) -> HttpResponse:
        """Send it. The same form sent again sends nothing, and shows what became of the first."""
        values, label = form.cleaned_data, self.record.invoice.label
        try:
            sending = send_invoice(
                self.user,
                self.record,
                values["to"],
                values["message"],
                request_id=values["request_id"],
                client=counted_client(self.request),
            )
        except ValidationError as error:
            form.add_error(None, error)
            return self.form_invalid(form)
        except (AlreadyVoided, SendingReused, TooManySendings) as error:
            problem = _REFUSALS[type(error)] % vars(error)
        except TooManyAttempts as error:
            return self.too_many(form, error)
        else:
            if sending.outcome == "sent":
                text = _("%(number)s was sent to %(to)s.")
                return self.redirect(text, "invoice", label, number=label, to=sending.to)
            if sending.may_be_under_way:
                # A second click on the button: the browser dropped the first request.
                text = _("The mail is still being sent. Load this page again to see the outcome.")
                return self.redirect(text, "invoice", label, level=messages.INFO)
            # Without the address and the text.
            logger.warning("An invoice was not sent: %s. %s", sending.outcome, sending.error)
            problem = _NOT_SENT[sending.outcome] % {"to": sending.to}
        form.add_error(None, problem)
        form.renew_request_id()
        return self.form_invalid(form)

    def too_many(self, form: SendForm, error: TooManyAttempts) -> HttpResponse:
        """The form again, as a 429."""
        text = (
            _("This address has received too many invoices. You can try again in %(wait)s.")
            if error.limit in {"mail_account_recipient", "mail_recipient"}
            else _("You have sent too many mails. You can try again in %(wait)s.")
        )
        form.add_error(None, text % {"wait": in_words(error.retry_after_seconds)})
        response = self.form_invalid(form)
        response.status_code = 429
        response["Retry-After"] = str(error.retry_after_seconds)
        return response
