"""The pages of invoices. They show the invoices of the signed-in account; others are 404."""

import logging
import uuid
from datetime import date, timedelta
from functools import partial
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.formats import date_format
from django.utils.http import content_disposition_header, quote_etag
from django.utils.translation import gettext as _, gettext_lazy
from django.views import View
from django.views.generic import FormView, TemplateView

from accounts.limits.clients import counted_client
from accounts.limits.lines import InLineMixin
from accounts.limits.local import LocalLimit
from accounts.models import User
from accounts.pages import keptforms
from accounts.pages.base import DOWNLOAD, FormPageMixin, SignedInFormMixin, signed_in
from accounts.sessions.middleware import read_with_visitor
from dynamo import Unavailable
from dynamo.middleware import as_unavailable
from dynamo.runtime.threads import together
from invoices import exceptions
from invoices.document.amounts import MAX_LINES
from invoices.document.invoice import Invoice, draw_up, series_of, typed_values_of
from invoices.document.money import readable_amount
from invoices.document.places import currency_of, is_currency
from invoices.document.requirements import language_of
from invoices.models import CustomerItem, SellerProfile
from invoices.output import einvoices
from invoices.output.helper import run_in_helper
from invoices.output.pdf import name_of, pdf_of
from invoices.pages import forms
from invoices.store.customers import customer_of, list_customers
from invoices.store.issuing import issue_invoice, label_issued_with, must_confirm, today
from invoices.store.lists import Listed, latest_invoices, list_invoices, search_invoices, sums_of
from invoices.store.records import STANDINGS, Record, find_invoice, find_record
from invoices.store.sellers import profile_of
from invoices.store.sendings import sendings_of
from sequences import DamagedSeries, ItemTooLarge, SequenceError

#: A person who types sends a few questions per second, and an office may share an address.
previews = LocalLimit(times=300, seconds=10)

#: How many invoices the start page lists, and how many that are overdue.
RECENT = 5

logger = logging.getLogger(__name__)

#: Buttons of the form that change it and issue nothing. `change` is of previews that were opened
#: before they had a URL.
_FORM_BUTTONS = ("add_line", "enter", "remove_line", "find_customer", "use_customer", "change")
#: Fields of a kept form that its preview does not send again.
_NOT_TYPED = {keptforms.LEFT, "preview", "defaults"}


class OwnInvoicesMixin(LoginRequiredMixin):
    """A page about the invoices of the signed-in account."""

    request: HttpRequest

    @property
    def user(self) -> User:
        return signed_in(self.request)

    @property
    def account(self) -> str:
        return self.user.pk

    @property
    def today(self) -> date:
        return today(self.user.time_zone)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """What the account does not have is 404."""
        try:
            answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        except (exceptions.UnknownInvoice, CustomerItem.DoesNotExist) as error:
            raise Http404(str(error)) from error
        return answer

    def redirect(
        self, text: str, *to: Any, level: int = messages.SUCCESS, **values: Any
    ) -> HttpResponse:
        """Lead to the page `to`, as Django's `redirect`, which shows a message."""
        messages.add_message(self.request, level, text % values)
        return redirect(*to)


class OwnFormView(SignedInFormMixin, OwnInvoicesMixin, FormPageMixin, FormView):
    """A form about the invoices of the signed-in account."""

    #: The field at which a refusal is shown; by default above the form.
    refused_at: str | None = None

    def act(self, form: Any) -> HttpResponse:
        """Call the operation, and lead to another page."""
        raise NotImplementedError

    def form_valid(self, form: Any) -> HttpResponse:
        """Act, or show why that was refused. Sent again, the same form does nothing more."""
        try:
            return self.act(form)
        except ValidationError as error:
            form.add_error(None, error)
        except SequenceError as error:
            form.add_error(self.refused_at, refusal_text(error))
            if isinstance(error, (exceptions.InvoiceRequestReused, exceptions.SendingReused)):
                form.renew_request_id()
        except Unavailable as error:
            # The form keeps its request id: with a new one it could issue a second invoice.
            text = _(
                "The database did not answer in time, so we do not know whether this was done. "
                "Send the form again: it is done only once."
            )
            form.add_error(None, text)
            return as_unavailable(self.request, self.form_invalid(form), error)
        return self.form_invalid(form)


class SellerMixin(OwnInvoicesMixin):
    """A page that shows or changes the seller, whose profile is read together with the visitor."""

    #: None only if nobody is signed in.
    profile: SellerProfile

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.profile = cast(SellerProfile, read_with_visitor(request, profile_of))
        return super().dispatch(request, *args, **kwargs)


class HomeView(TemplateView):
    """The start page. Signed in: what is open, what is overdue, and the newest invoices."""

    template_name = "home.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if not self.request.user.is_authenticated:
            return super().get_context_data(**kwargs)
        user = signed_in(self.request)
        read = partial(latest_invoices, user.pk, today(user.time_zone))
        if user.is_confirmed:
            latest, since = read()
            profile = None if latest else profile_of(user.pk)
        else:
            (latest, since), profile = together(read, partial(profile_of, user.pk))
        summed = [item for item in latest if since is None or item.issued_at >= since]
        figures = [figure(state, summed) for state in ("open", "overdue")]
        return super().get_context_data(
            recent=latest[:RECENT],
            overdue=figures[1]["invoices"][:RECENT],
            figures=figures,
            since=since,
            summed=summed,
            # The first steps: whether each was done, by the URL name of its page.
            steps=profile
            and {
                "profile": user.is_confirmed,
                "seller": bool(profile.name and profile.address),
                "invoice_new": bool(latest),
            },
            **kwargs,
        )


def figure(state: str, latest: list[Listed]) -> dict[str, Any]:
    """The invoices of `latest` that are in a state of the list's filter, and their sums."""
    found = [item for item in latest if item.standing in forms.FILTERS[state]]
    title = STANDINGS[state]
    sums = sums_of(found)
    return {"state": state, "title": title, "invoices": found, "sums": sums}


class InvoiceListView(OwnInvoicesMixin, TemplateView):
    """The invoices of a year, newest first; optionally of a customer, or in a state."""

    template_name = "invoices/invoice_list.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        form = forms.ListForm(self.request.GET)
        if not form.is_valid():
            raise Http404("The query of the list is not valid.")
        query = form.cleaned_data
        this_year = self.today.year
        year = query["year"] or this_year
        state = query["state"]
        is_search = bool(state or query["customer"])
        page = (search_invoices if is_search else list_invoices)(
            self.account,
            year,
            before=query["before"],
            customer=query["customer"],
            standings=forms.FILTERS.get(state, STANDINGS),
            today=self.today,
        )
        if page.damaged:
            series = series_of(self.account, year)
            logger.error("Damaged invoices of %s: %s", series, ", ".join(page.damaged))
        return super().get_context_data(
            form=form,
            page=page,
            year=year,
            customer=query["customer"],
            state=state,
            is_search=is_search,
            is_first_page=query["before"] is None,
            earlier_year=year - 1 if year > forms.FIRST_YEAR else None,
            # Invoices may have dates of next year.
            later_year=year + 1 if year <= this_year else None,
            **kwargs,
        )


def may_void(record: Record) -> bool:
    """Whether pages offer to void an invoice."""
    return settings.INVOICES_ALLOW_VOID and record.can_be_voided


class InvoiceView(OwnInvoicesMixin, InLineMixin, TemplateView):
    template_name = "invoices/invoice.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        record = find_record(self.account, kwargs["label"], self.today)
        return super().get_context_data(
            invoice=record.invoice,
            record=record,
            may_void=may_void(record),
            sendings=sendings_of(record.state),
            einvoice_lacks=einvoices.missing(record.invoice),
            **kwargs,
        )


def shown_pdf(content: bytes, name: str) -> HttpResponse:
    """A PDF, which the browser shows."""
    headers = {"Content-Disposition": content_disposition_header(False, f"{name}.pdf")}
    return HttpResponse(content, content_type="application/pdf", headers=headers)


def download_page(request: HttpRequest, name: str) -> HttpResponse:
    """The page that a sign-in leads to: it begins the download."""
    response = render(request, "invoices/download.html", {"name": name, "url": request.path})
    # After the page is shown.
    response["Refresh"] = f"1;url={request.path}"
    return response


class InvoicePdfView(OwnInvoicesMixin, InLineMixin, View):
    """One invoice as a PDF, which the browser shows."""

    def get(self, request: HttpRequest, label: str) -> HttpResponseBase | None:
        """The file, or 304 if the browser has it; then it is not made."""
        invoice = find_invoice(self.account, label)
        etag = quote_etag(name_of(invoice))
        response = shown_pdf(b"", invoice.label)
        response["ETag"] = etag
        answer = get_conditional_response(request, etag=etag, response=response)
        if answer is response:
            response.content = pdf_of(invoice)
        return answer


class InvoiceXmlView(OwnInvoicesMixin, InLineMixin, View):
    """One invoice as an electronic invoice. 404 if it lacks what the standard asks."""

    is_download = True

    def get(self, request: HttpRequest, label: str) -> HttpResponse:
        invoice = find_invoice(self.account, label)
        if missing := einvoices.missing(invoice):
            raise Http404(f"Not an electronic invoice: {', '.join(missing)}")
        if DOWNLOAD in request.GET:
            return download_page(request, f"{invoice.label}.xml")
        headers = {"Content-Disposition": content_disposition_header(True, f"{invoice.label}.xml")}
        xml = run_in_helper(einvoices.as_xml, invoice, account=self.account)
        return HttpResponse(xml, content_type="application/xml", headers=headers)


class InvoiceNewView(SellerMixin, InLineMixin, OwnFormView):
    """Issues an invoice. Lines are added and removed by a script, or by buttons of the form.

    The form is sent to a URL with its request id (`?draft=`). There it is kept when its preview is
    shown, so that each tab has its own.
    """

    template_name = "invoices/invoice_new.html"
    form_class = forms.InvoiceForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        response.headers["Content-Security-Policy"] = settings.REQUESTING_POLICY
        return response

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
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
            lines = forms.line_values_of(model)
        form = self.unsent_form({**values, "request_id": forms.InvoiceForm.new_request_id()}, lines)
        return self.render_to_response(self.get_context_data(form=form))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Issue it, or show the form with a line added or removed."""
        if any(request.POST.get(name) for name in _FORM_BUTTONS):
            return self.show_sent(request.POST)
        if request.POST.get("preview"):
            return self.preview()
        return super().post(request, *args, **kwargs)

    def preview(self) -> HttpResponse:
        """Keep the form, and lead to its preview."""
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
        """The way to the invoice if it was already issued with the form of this URL."""
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
        """The form with the values in `sent`, changed as the pressed button says."""
        values = {name: sent.get(name, "") for name in forms.InvoiceForm.base_fields}
        lines = forms.typed_lines(sent)
        focus, customers, id_ = None, None, sent.get("use_customer")
        # Without the script, the key Enter does not say in which field it was pressed.
        is_search = "enter" in sent and values["customer_name"] and not forms.any_typed(lines)
        if sent.keys() & {"add_line", "enter"} and not is_search:
            if len(lines) < MAX_LINES:
                lines.append(forms.blank_line_after(lines))
            focus = len(lines) - 1
        elif number := sent.get("remove_line"):
            at = next((at for at in range(len(lines)) if str(at) == number), len(lines))
            del lines[at : at + 1]
            focus = max(0, at - 1)
        elif "find_customer" in sent or is_search:
            customers = list_customers(self.account, values["customer_name"]).customers
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
        """What a person would type for a customer. One without a country is a domestic one."""
        values = {f"customer_{name}": value for name, value in vars(customer_of(item)).items()}
        return values | {"customer_country": item.country or self.profile.country or ""}

    def defaults(self) -> dict[str, str]:
        """What the seller's profile says that a new form begins with."""
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
        """The visitor may have changed the seller's profile in the meantime."""
        opened = dict(parse_qsl(sent.get("defaults", "")))
        now = self.defaults()
        if sent.get("customer_name") and sent.get("customer_country"):
            # The country of this customer, even if it is the default.
            now.pop("customer_country", None)
            opened.pop("customer_country", None)
        for name in opened.keys() | now.keys():
            # Browsers change line ends.
            if sent.get(name, "").split() == opened.get(name, "").split():
                sent[name] = now.get(name, "")

    def unsent_form(self, values: dict[str, str], lines: list[dict[str, str]]) -> forms.InvoiceForm:
        """The form with these values, unchecked."""
        return forms.InvoiceForm(initial=values, lines=lines, user=self.user, profile=self.profile)

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"user": self.user, "profile": self.profile}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        sent = self.request.POST.get("defaults") or urlencode(self.defaults())
        kwargs = {"must_confirm": must_confirm(self.user), "sent_defaults": sent} | kwargs
        context = super().get_context_data(**kwargs)
        form = context["form"]
        context["page"] = self.page_of(form)
        about = form.seller, form.typed_draft(), form.lines
        known = {"usual_terms": form.usual_terms, "is_named": form.is_named}
        return context | forms.checks_of(*about, **known)

    def act(self, form: forms.InvoiceForm) -> HttpResponse:
        """Issue it. The same form sent again leads to the same invoice."""
        draft = form.draft()
        # Refuses the dates, too, if midnight has passed since the form was checked.
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

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The preview; the invoice if it was issued meanwhile."""
        page = f"{reverse('invoice_new')}?{request.GET.urlencode()}"
        sent = keptforms.kept_for(request, page)
        if sent is None:
            text = _("This preview is no longer kept. The invoice was not issued.")
            return self.issued_page() or self.redirect(text, page, level=messages.WARNING)
        form = forms.InvoiceForm(is_preview=True, **self.get_form_kwargs() | {"data": sent})
        if not form.is_valid():
            # The profile was changed meanwhile, or midnight has passed.
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


class PreviewView(View):
    """The amounts of a form that is not sent yet, and what it lacks, as JSON:
    `{"lines": […], "totals": "<dl>…", "checks": "<div>…"}`.

    Anybody may ask, with the token of a page: the answer depends on nothing but what is sent.
    So it costs no request to DynamoDB.
    """

    http_method_names = ("options", "post")

    def post(self, request: HttpRequest) -> HttpResponse:
        if not previews.take(counted_client(request)):
            return HttpResponse(status=429, headers={"Retry-After": str(previews.seconds)})
        amounts, sums = forms.preview(request.POST)
        currency = request.POST.get("currency", "")
        lines = ["" if amount is None else readable_amount(amount, currency) for amount in amounts]
        shown = {"invoice": {"totals": sums, "currency": currency}}
        html = render_to_string("invoices/_totals.html", shown) if sums else ""
        checks = render_to_string("invoices/_checks.html", forms.checks(request.POST))
        return JsonResponse({"lines": lines, "totals": html, "checks": checks})


_REFUSALS: dict[type[SequenceError], Any] = {
    exceptions.InvoiceRequestReused: gettext_lazy(
        "You have already issued invoice %(number)s with this form, with other contents. To issue "
        "another invoice, send the form again."
    ),
    exceptions.DateTooEarly: gettext_lazy(
        "Your last invoice is dated %(last)s. You cannot issue an invoice before that day."
    ),
    ItemTooLarge: gettext_lazy(
        "The invoice is too long: %(size)s KB, and %(limit)s KB are allowed. Shorten its "
        "lines, or split it into two invoices."
    ),
    DamagedSeries: gettext_lazy(
        "Your invoices of this year do not match their counter, so nothing was issued. Please tell "
        "the operator of this site."
    ),
    exceptions.AlreadyVoided: gettext_lazy("The invoice was already voided: %(reason)s"),
    exceptions.AlreadyCredited: gettext_lazy(
        "The invoice was already credited. Its page shows the credit note."
    ),
    exceptions.AlreadySent: gettext_lazy(
        "The invoice was sent by email, or may have been. Credit it instead."
    ),
    exceptions.AlreadyPaid: gettext_lazy("The invoice is already marked as paid on %(paid_on)s."),
    exceptions.IsCreditNote: gettext_lazy(
        "A credit note cannot be voided, credited, or marked as paid."
    ),
    exceptions.SendingReused: gettext_lazy(
        "This form has already sent the invoice to %(to)s. To send it to another address, too, "
        "send the form again."
    ),
    exceptions.AddressBookFull: gettext_lazy(
        "Your address book has %(limit)s customers, and more are not allowed. Delete some that you "
        "do not need."
    ),
    exceptions.TooManySendings: gettext_lazy(
        "This invoice was sent too often. You can send it again in two days."
    ),
}


def refusal_text(error: SequenceError) -> str:
    """Why the invoice was not issued, changed or sent."""
    if type(error) not in _REFUSALS:
        raise error
    if isinstance(error, DamagedSeries):
        logger.error("%s", error)
    values = {
        name: date_format(value) if isinstance(value, date) else value
        for name, value in vars(error).items()
    }
    if isinstance(error, ItemTooLarge):
        values |= {"size": -(-error.size_bytes // 1024), "limit": error.limit_bytes // 1024}
    return str(_REFUSALS[type(error)] % values)
