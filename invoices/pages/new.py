"""The form of a new invoice and its previews."""

import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views import View

from accounts.pages import keptforms
from invoices.document.amounts import MAX_LINES
from invoices.document.invoice import Invoice, draw_up, typed_values_of
from invoices.document.money import readable_amount
from invoices.document.places import currency_of, is_currency
from invoices.document.requirements import language_of
from invoices.models import CustomerItem
from invoices.output.pdf import pdf_of
from invoices.pages import forms, lineforms
from invoices.pages.base import LongPageMixin, OwnFormView, SellerMixin, shown_pdf
from invoices.store.customers import customer_of, list_customers
from invoices.store.issuing import issue_invoice, label_issued_with, must_confirm
from invoices.store.records import find_invoice

#: Buttons of the form that change it and issue nothing.
_FORM_BUTTONS = ("add_line", "enter", "remove_line", "find_customer", "use_customer")
#: Fields of a kept form that its preview does not send again.
_NOT_TYPED = {keptforms.LEFT, "preview", "defaults"}


class InvoiceNewView(SellerMixin, LongPageMixin, OwnFormView):
    """Issues an invoice. Lines are added and removed by a script, or by buttons of the form.

    The form is sent to a URL with its request id (`?draft=`). The form of this URL is kept when its
    preview is shown, so that each tab has its own form.
    """

    template_name = "invoices/invoice_new.html"
    form_class = forms.InvoiceForm

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        response.headers["Content-Security-Policy"] = settings.REQUESTING_POLICY
        return response

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """A form with one line; with `?from=`, a form with the contents of that invoice."""
        if shown := self.kept_form_page() or self.issued_page():
            return shown
        if "draft" not in request.GET and (there := keptforms.newest_url(request)):
            return redirect(there)
        values, lines = self.defaults(), []
        if id_ := request.GET.get("customer"):
            values |= self.values_of(CustomerItem.get(self.account, id_))
        if label := request.GET.get("from"):
            model = find_invoice(self.account, label)
            # Its own dates have passed.
            due = {"supplied_from": "", "supplied_to": "", "due_date": values.get("due_date", "")}
            values = typed_values_of(model) | due
            lines = lineforms.line_values_of(model)
        form = self.unsent_form(values, lines)
        return self.render_to_response(self.get_context_data(form=form))

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Issue it, or show the form with a line added or removed."""
        if any(request.POST.get(name) for name in _FORM_BUTTONS):
            return self.show_sent(request.POST)
        if request.POST.get("preview"):
            return self.preview()
        return super().post(request, *args, **kwargs)

    def preview(self) -> HttpResponse:
        """Keep the form, and redirect to its preview."""
        form = forms.InvoiceForm(is_preview=True, **self.get_form_kwargs())
        if not form.is_valid():
            return self.form_invalid(form)
        page = self.page_of(form)
        if not keptforms.keep_left(self.request, page, self.account):
            messages.error(self.request, _("This invoice is too long for a preview."))
            return self.show_sent(self.request.POST)
        return redirect(f"{reverse('invoice_new_preview')}?{page.partition('?')[2]}")

    def page_of(self, form: forms.InvoiceForm) -> str:
        """The URL that the form is sent to."""
        query = self.request.GET.copy()
        query["draft"] = str(form["request_id"].value() or "").partition(":")[0]
        return f"{reverse('invoice_new')}?{query.urlencode()}"

    def issued_page(self) -> HttpResponse | None:
        """A redirect to the invoice if the form of this URL has already issued it."""
        try:
            id_ = str(uuid.UUID(self.request.GET.get("draft", "")))
        except ValueError:
            return None
        number = label_issued_with(id_, self.account)
        text = _("This form has issued invoice %(number)s.")
        return (
            self.redirect(text, "invoice", number, level=messages.INFO, number=number)
            if number
            else None
        )

    def show_sent(self, sent: QueryDict) -> HttpResponse:
        """The form with the values in `sent`, after the change of the pressed button."""
        values = {name: sent.get(name, "") for name in forms.InvoiceForm.base_fields}
        lines = lineforms.typed_lines(sent)
        focus, customers, id_ = None, None, sent.get("use_customer")
        # Without the script, the key Enter does not say in which field it was pressed.
        is_search = "enter" in sent and values["customer_name"] and not lineforms.any_typed(lines)
        if sent.keys() & {"add_line", "enter"} and not is_search:
            if len(lines) < MAX_LINES:
                lines.append(lineforms.blank_line_after(lines))
            focus = len(lines) - 1
        elif number := sent.get("remove_line"):
            at = next((at for at in range(len(lines)) if str(at) == number), len(lines))
            del lines[at : at + 1]
            focus = max(0, at - 1)
        elif "find_customer" in sent or is_search:
            customers = list_customers(self.account, values["customer_name"])
            if len(customers) == 1:
                id_, customers = customers[0].id, None
        if id_:
            try:
                values |= self.values_of(CustomerItem.get(self.account, id_))
            except CustomerItem.DoesNotExist:
                messages.error(self.request, _("This customer was deleted meanwhile."))
        form = self.unsent_form(values, lines)
        if focus is not None:
            line = form.lines.forms[min(focus, len(form.lines.forms) - 1)]
            line.fields["description"].widget.attrs["autofocus"] = True
        context = self.get_context_data(form=form, customers=customers, is_typed=True)
        return self.render_to_response(context)

    def values_of(self, item: CustomerItem) -> dict[str, str]:
        """The typed values for a customer. A customer without a country is a domestic one."""
        values = {f"customer_{name}": value for name, value in vars(customer_of(item)).items()}
        return values | {"customer_country": item.country or self.profile.country or ""}

    def defaults(self) -> dict[str, str]:
        """The initial values of a new form, from the seller's profile."""
        profile, due = self.profile, ""
        currency = profile.currency or currency_of(profile.country or "")
        if profile.payment_days is not None:
            due = (self.today + timedelta(days=profile.payment_days)).isoformat()
        values = {
            "customer_country": profile.country,
            "currency": currency if is_currency(currency) else "",
            "payment_terms": profile.payment_terms,
            "due_date": due,
        }
        return {name: value for name, value in values.items() if value}

    def renew_defaults(self, sent: QueryDict) -> None:
        """Update values that came from the profile, which may have changed in the meantime."""
        opened = dict(parse_qsl(sent.get("defaults", "")))
        now = self.defaults()
        names = opened.keys() | now.keys()
        if sent.get("customer_name") and sent.get("customer_country"):
            # The country belongs to this customer, even if it equals the default.
            names.discard("customer_country")
        for name in names:
            # Browsers change line ends.
            if sent.get(name, "").split() == opened.get(name, "").split():
                sent[name] = now.get(name, "")

    def unsent_form(self, values: dict[str, str], lines: list[dict[str, str]]) -> forms.InvoiceForm:
        """The form with these values, unchecked."""
        return forms.InvoiceForm(initial=values, lines=lines, user=self.user, profile=self.profile)

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"user": self.user, "profile": self.profile}

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        sent = self.request.POST.get("defaults") or urlencode(self.defaults())
        kwargs = {"must_confirm": must_confirm(self.user), "sent_defaults": sent} | kwargs
        context = super().get_context_data(**kwargs)
        form = context["form"]
        context["page"] = self.page_of(form)
        return context | form.checks()

    def act(self, form: forms.InvoiceForm) -> HttpResponse:
        """Issue the invoice. The same form sent again leads to the same invoice."""
        draft = form.draft()
        # This also refuses the dates, if midnight has passed since the form was checked.
        invoice = issue_invoice(
            draft,
            account=self.account,
            seller=form.seller,
            request_id=form.cleaned_data["request_id"],
            language=language_of(draft.customer),
            time_zone=self.user.time_zone,
        )
        number = invoice.label
        return self.redirect(_("Invoice %(number)s was issued."), "invoice", number, number=number)


class InvoiceNewPreviewView(InvoiceNewView):
    """The invoice of a kept form as it would be issued now, without a number."""

    http_method_names = ("get", "head", "options")

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """The preview; the invoice if it was issued in the meantime."""
        page = f"{reverse('invoice_new')}?{request.GET.urlencode()}"
        sent = keptforms.kept_for(request, page)
        if sent is None:
            text = _("This preview is no longer kept. The invoice was not issued.")
            return self.issued_page() or self.redirect(text, page, level=messages.WARNING)
        form = forms.InvoiceForm(is_preview=True, **self.get_form_kwargs() | {"data": sent})
        if not form.is_valid():
            # The profile was changed in the meantime, or midnight has passed.
            return self.form_invalid(form)
        draft = form.draft()
        request_id = form.cleaned_data["request_id"]
        about = self.account, form.seller, self.today, request_id
        invoice = draw_up(draft, *about, language_of(draft.customer))
        return self.show_drawn_up(form, invoice)

    def show_drawn_up(self, form: forms.InvoiceForm, invoice: Invoice) -> HttpResponse:
        sent = [item for item in form.data.items() if item[0] not in _NOT_TYPED]
        kept = {"sent_fields": sent, "sent_defaults": form.data.get("defaults", "")}
        context = self.get_context_data(form=form, invoice=invoice, **kept)
        return TemplateResponse(self.request, "invoices/invoice_preview.html", context)


class InvoicePreviewPdfView(InvoiceNewPreviewView):
    """The PDF of a preview: a draft without a number. Nothing is stored."""

    def show_drawn_up(self, form: forms.InvoiceForm, invoice: Invoice) -> HttpResponse:
        return shown_pdf(pdf_of(invoice, keep=False), "draft")


class PreviewView(SellerMixin, LongPageMixin, View):
    """The amounts of a form that is not sent yet, and what it lacks, as JSON:
    `{"lines": […], "totals": "<dl>…", "checks": "<div>…"}`.
    """

    def post(self, request: HttpRequest) -> HttpResponse:
        form = forms.InvoiceForm(
            request.POST, user=self.user, profile=self.profile, is_preview=True
        )
        form.is_valid()
        amounts, sums = form.amounts()
        known = ["" if item is None else readable_amount(item, form.currency) for item in amounts]
        shown = {"invoice": {"totals": sums, "currency": form.currency}}
        html = render_to_string("invoices/_totals.html", shown) if sums else ""
        checks = render_to_string("invoices/_checks.html", form.checks())
        return JsonResponse({"lines": known, "totals": html, "checks": checks})
