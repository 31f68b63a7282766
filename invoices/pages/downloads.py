"""Downloads: a year's invoices, and all data of an account.

With `EXPORTS_BUCKET`, on AWS Lambda, a page starts an export, which stores the file in S3, and then
redirects there. Otherwise, the file is made while it is sent. This takes a thread of the server
until the last byte is read, and the reader may be slow (`project.start` says how slow). Therefore,
a process sends one file at a time to each account, and a few in total.
"""

import logging
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views import View

from accounts.pages.account import AccountDeleteView
from accounts.pages.base import DOWNLOAD, signed_in
from accounts.pages.signin import FreshSignInMixin
from accounts.sessions.visitor import is_fresh
from dynamo import RequestIdReused
from dynamo.middleware import logged
from dynamo.runtime.gates import Gate, GateFull
from dynamo.runtime.processes import PerProcess
from invoices.output import exports as stored_exports
from invoices.output.exports import Export
from invoices.pages.base import OwnInvoicesMixin, download_page
from invoices.store.issuing import today
from invoices.store.lists import list_invoices, years_of
from outbox.framework import TaskException

#: Downloads at once in a process. Each takes one of the server's threads, of which pages leave 24
#: (`project.middleware`).
AT_ONCE = 16

RETRY_AFTER_SECONDS = 10

#: The years whose downloads are offered before an account is deleted: as long as invoices must be
#: kept in most countries.
OFFERED_YEARS = 10

#: The page of an export refreshes itself after this time.
REFRESH_SECONDS = 5

logger = logging.getLogger(__name__)

_gate = PerProcess(lambda: Gate("a download", AT_ONCE, 0, per=0))


class DownloadView(OwnInvoicesMixin, View):
    """A file of the signed-in account. `ending` names its kind."""

    ending = ""
    is_download = True

    def get(self, request: HttpRequest, year: int | None = None) -> HttpResponseBase:
        """The file, made while it is sent; with a bucket, the page that starts an export."""
        export = Export(self.account, self.ending, year)
        if settings.EXPORTS_BUCKET:
            return _export_page(request, export)
        if DOWNLOAD in request.GET:
            return download_page(request, export.name)
        return self.streamed(export)

    def post(self, request: HttpRequest, year: int | None = None) -> HttpResponseBase:
        """Start an export, unless one of the account is running."""
        if not settings.EXPORTS_BUCKET:
            return self.http_method_not_allowed(request)
        try:
            return redirect("export", stored_exports.start(Export(self.account, self.ending, year)))
        except RequestIdReused:
            messages.warning(request, _("Another file of your account is still being created."))
            return redirect(request.path)

    def streamed(self, export: Export) -> HttpResponseBase:
        """The file, made while it is sent.

        Answers 429 if this process already sends a file to the account, and 503 if it sends too
        many to others.
        """

        def pieces() -> Iterator[bytes]:
            with _gate().inside(export.account):
                made = stored_exports.pieces_of(export, self.user)
                yield b""
                yield from made

        # A generator that has begun leaves the gate even if it is neither read nor closed: for
        # example, if a middleware replaces the response by the 503 of a session that was not saved.
        begun = pieces()
        try:
            next(begun)
        except GateFull as error:
            return _refused(self.request, is_own=error.is_own)
        return StreamingHttpResponse(
            begun,
            content_type=export.content_type,
            headers={"Content-Disposition": content_disposition_header(True, export.name)},
        )


class YearDownloadView(DownloadView):
    """All invoices of a year as one of `YEAR_FILES`, oldest first; 404 if the year has none."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer 404 before anything is offered or made."""
        if settings.EXPORTS_BUCKET and request.user.is_authenticated:
            year = kwargs["year"]
            page = list_invoices(self.account, year, limit=1)
            if not (page.invoices or page.damaged):
                raise Http404(f"There are no invoices of {year}.")
        return super().dispatch(request, *args, **kwargs)


class AccountExportView(FreshSignInMixin, DownloadView):
    """All data that is stored about the signed-in user, as JSON."""

    ending = "json"


#: The names of the URLs of `YEAR_FILES`.
YEAR_URLS = {
    "csv": "invoices_csv",
    "lines.csv": "invoices_lines",
    "bookings.csv": "invoices_bookings",
    "zip": "invoices_zip",
}


class OwnExportMixin(OwnInvoicesMixin):
    """A page of an export that the signed-in account started; others are 404."""

    export: Export
    state: stored_exports.State

    def dispatch(self, request: HttpRequest, id: UUID) -> HttpResponseBase:
        """Ask for the password again if the file has all data of the account."""
        if not request.user.is_authenticated:
            return self.handle_no_permission()
        if not settings.EXPORTS_BUCKET:
            raise Http404("Exports are not stored: EXPORTS_BUCKET is not set.")
        try:
            self.export, self.state = stored_exports.find(str(id))
        except TaskException as error:
            raise Http404(str(error)) from error
        if self.export.account != self.account:
            raise Http404("The account has no such export.")
        if self.export.kind == "json" and not is_fresh(request):
            return redirect_to_login(request.get_full_path(), reverse("reauthenticate"))
        return super().dispatch(request, id)


class ExportView(OwnExportMixin, View):
    """Shows whether the file is ready. Until then, the page refreshes itself."""

    def get(self, request: HttpRequest, id: UUID) -> HttpResponse:
        response = _export_page(request, self.export, self.state)
        if self.state == "preparing":
            response["Refresh"] = str(REFRESH_SECONDS)
        return response


class ExportFileView(OwnExportMixin, View):
    """Leads to the file in S3."""

    is_download = True

    def get(self, request: HttpRequest, id: UUID) -> HttpResponseBase:
        if DOWNLOAD in request.GET or self.state != "ready":
            return redirect("export", id)
        return redirect(stored_exports.link_to(self.export))


def _export_page(request: HttpRequest, export: Export, state: str = "") -> HttpResponse:
    """The page that shows the state of the file, or, without one, offers to make it."""
    year = [export.year] if export.year else []
    start_url = reverse(YEAR_URLS.get(export.kind, "account_export"), args=year)
    context = {"export": export, "state": state, "start_url": start_url}
    return render(request, "invoices/export.html", context)


class AccountDeleteWithInvoicesView(AccountDeleteView):
    """The page that deletes the account, with the downloads of its invoices of the last years.

    Besides the requests of every page it costs 1, and 2 read units for each year.
    """

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        if "unanswered" not in kwargs:
            this_year = today().year
            # Invoices may have dates of next year.
            years = range(this_year - OFFERED_YEARS + 1, this_year + 2)
            kwargs["invoice_years"] = years_of(signed_in(self.request).pk, years)
        return super().get_context_data(**kwargs)


def _refused(request: HttpRequest, *, is_own: bool) -> HttpResponse:
    """The page that says why the download is rejected."""
    response = render(
        request, "invoices/download_refused.html", {"is_own": is_own}, status=429 if is_own else 503
    )
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    response["Cache-Control"] = "private, no-store"
    return logged(response, request, logger, "Too many downloads at once.")
