"""The pages that void, credit or send an invoice, or mark it as paid."""

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

from accounts.exceptions import TooManyAttempts
from accounts.limits.clients import counted_client
from accounts.limits.middleware import in_words
from dynamo.forms import RequestIdForm
from invoices.exceptions import NotPaid
from invoices.output.sending import MESSAGE, NOT_SENT, SUBJECT, TO, send_invoice, texts_of
from invoices.pages.base import OwnFormView, OwnInvoicesMixin
from invoices.pages.views import may_void
from invoices.store.issuing import check_may_issue
from invoices.store.records import Record, find_record
from invoices.store.settlement import (
    CREDIT_REASON,
    PAID_ON,
    VOID_REASON,
    check_paid_on,
    credit,
    mark_paid,
    mark_unpaid,
    void,
)


class VoidForm(Form):
    """The reason why an invoice is voided."""

    reason = VOID_REASON.form_field()


class CreditForm(Form):
    """The reason why an invoice is credited."""

    reason = CREDIT_REASON.form_field()


class PaidForm(Form):
    """The day when an invoice was paid."""

    paid_on = PAID_ON.form_field()


class SendForm(RequestIdForm):
    """The recipient of an invoice, and subject and text of its mail."""

    request_id_salt = "invoices.sending"

    to = TO.form_field()
    # These are required, because an empty text would be replaced by the default, which the page
    # does not show.
    subject = SUBJECT.form_field(default=None)
    message = MESSAGE.form_field(default=None)


class ChangeView(OwnFormView):
    """Asks for one value and makes one change of an invoice. Subclasses make the change."""

    refused_at: str | None = "reason"

    @property
    def label(self) -> str:
        return str(self.kwargs["label"])

    @cached_property
    def record(self) -> Record:
        return find_record(self.account, self.label, self.today)

    @property
    def is_possible(self) -> bool:
        return self.record.can_be_credited

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """The form. If the change is not possible, the page of the invoice shows the reason."""
        if not self.is_possible:
            return redirect("invoice", self.record.invoice.label)
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        return super().get_context_data(
            invoice=self.record.invoice,
            record=self.record,
            may_void=may_void(self.record),
            **kwargs,
        )


class InvoiceVoidView(ChangeView):
    """Asks for the reason, and voids an invoice. 404 if the site does not allow it."""

    template_name = "invoices/invoice_void.html"
    form_class = VoidForm

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if request.user.is_authenticated and not settings.INVOICES_ALLOW_VOID:
            raise Http404("Invoices cannot be voided: INVOICES_ALLOW_VOID is off.")
        return super().dispatch(request, *args, **kwargs)

    @property
    def is_possible(self) -> bool:
        return may_void(self.record)

    def act(self, form: Form) -> HttpResponse:
        reason = form.cleaned_data["reason"]
        void(self.account, self.label, reason, time_zone=self.user.time_zone)
        text = _("Invoice %(number)s was voided.")
        return self.redirect(text, "invoice", self.label, number=self.label)


class InvoiceCreditView(ChangeView):
    """Asks for the reason, issues the credit note, and leads to its page."""

    template_name = "invoices/invoice_credit.html"
    form_class = CreditForm

    def act(self, form: Form) -> HttpResponse:
        check_may_issue(self.user)
        reason, zone = form.cleaned_data["reason"], self.user.time_zone
        note = credit(self.account, self.label, reason, time_zone=zone)
        text = _("Invoice %(number)s was credited by credit note %(credit_note)s.")
        return self.redirect(text, "invoice", note.label, number=self.label, credit_note=note.label)


class InvoicePaidView(ChangeView):
    """Asks for the day, by default today, and marks an invoice as paid."""

    template_name = "invoices/invoice_paid.html"
    form_class = PaidForm
    refused_at = "paid_on"

    @property
    def is_possible(self) -> bool:
        return self.record.can_be_paid

    def get_initial(self) -> dict[str, object]:
        return {"paid_on": self.today.isoformat()}

    def act(self, form: Form) -> HttpResponse:
        mark_paid(self.account, self.label, check_paid_on(form.cleaned_data["paid_on"], self.today))
        text = _("Invoice %(number)s was marked as paid.")
        return self.redirect(text, "invoice", self.label, number=self.label)


class InvoiceUnpaidView(OwnInvoicesMixin, View):
    """Undoes the payment of the day that the page showed."""

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


class InvoiceSendView(ChangeView):
    """Shows the mail, which can be changed, asks for its recipient, and sends the invoice."""

    template_name = "invoices/invoice_send.html"
    form_class = SendForm
    refused_at = None

    @property
    def is_possible(self) -> bool:
        return not self.record.invoice.is_voided

    def get_initial(self) -> dict[str, object]:
        invoice = self.record.invoice
        subject, text = texts_of(invoice)
        return {"to": invoice.customer.email, "subject": subject, "message": text}

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        return super().get_context_data(
            reply_to=self.user.email, must_confirm=not self.user.is_confirmed, **kwargs
        )

    def act(self, form: SendForm) -> HttpResponse:
        """Send the invoice.

        If the same form is sent again, it shows the outcome of the first sending.
        """
        label, client = self.record.invoice.label, counted_client(self.request)
        try:
            sending = send_invoice(self.user, self.record, **form.cleaned_data, client=client)
        except TooManyAttempts as error:
            return self.too_many(form, error)
        if sending.outcome in {"waiting", "sent"}:
            text = _("%(number)s is being sent to %(to)s.")
            if sending.outcome == "sent":
                text = _("%(number)s was sent to %(to)s.")
            return self.redirect(text, "invoice", label, number=label, to=sending.to)
        form.add_error(None, NOT_SENT[sending.outcome] % {"to": sending.to})
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
