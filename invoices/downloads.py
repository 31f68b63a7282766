"""Downloads that are made while they are sent: a year's invoices, and all data of an account.

A download holds a thread of the server until its last byte is read, and the reader may be slow.
So a process sends one file at a time to each account, and a few in total.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils.log import log_response
from django.views import View

from accounts.pages import signed_in
from accounts.sessions.views import FreshSignInMixin
from accounts.views import AccountDeleteView
from dynamo.processes import PerProcess
from invoices.documents import Invoice
from invoices.exports import account_as_json, as_csv, as_zip
from invoices.issuing import today
from invoices.records import all_invoices, years_of
from invoices.views import OwnInvoicesMixin

#: Downloads at once in a process: fewer than the server has threads.
AT_ONCE = 3

RETRY_AFTER_SECONDS = 10

#: The years whose downloads are offered before an account is deleted: as long as invoices must be
#: kept in most countries.
OFFERED_YEARS = 10

logger = logging.getLogger(__name__)


class YearDownloadView(OwnInvoicesMixin, View):
    """All invoices of a year as one file, oldest first."""

    ending = ""
    content_type = ""
    #: Returns the pieces of the file.
    pieces_of: Callable[[Iterable[Invoice]], Iterator[bytes]]

    def get(self, request: HttpRequest, year: int) -> HttpResponseBase:
        """The file, or 404 if the year has no invoice."""

        def make() -> Iterator[bytes]:
            invoices = all_invoices(self.account, year, oldest_first=True)
            # The first one is read before the answer begins, because it decides its status.
            first = next(invoices, None)
            if first is None:
                raise Http404(f"There are no invoices of {year}.")
            return self.pieces_of(chain([first], invoices))

        name = f"invoices-{year}.{self.ending}"
        return _stream(request, self.account, make, self.content_type, name)


class InvoicesCsvView(YearDownloadView):
    ending = "csv"
    content_type = "text/csv; charset=utf-8"
    pieces_of = staticmethod(as_csv)


class InvoicesZipView(YearDownloadView):
    """The PDFs of a year."""

    ending = "zip"
    content_type = "application/zip"
    pieces_of = staticmethod(as_zip)


class AccountExportView(FreshSignInMixin, View):
    """All data that is stored about the signed-in user, as JSON."""

    http_method_names = ("get",)

    def get(self, request: HttpRequest) -> HttpResponseBase:
        """The file, or 503 if DynamoDB does not answer before its first piece is known."""
        user = signed_in(request)
        return _stream(
            request, user.pk, lambda: account_as_json(user), "application/json", "account.json"
        )


class AccountDeleteWithInvoicesView(AccountDeleteView):
    """The page that deletes the account, with the downloads of its invoices of the last years.

    Besides the requests of every page it costs 1, and 2 read units for each year.
    """

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if "unanswered" not in kwargs:
            this_year = today().year
            # Invoices may have dates of next year.
            years = range(this_year - OFFERED_YEARS + 1, this_year + 2)
            kwargs["invoice_years"] = years_of(signed_in(self.request).pk, years)
        return super().get_context_data(**kwargs)


def _stream(
    request: HttpRequest,
    account: str,
    make: Callable[[], Iterator[bytes]],
    content_type: str,
    name: str,
) -> HttpResponseBase:
    """The file `name`, made of the pieces that `make` returns, as a download of `account`.

    Answers 429 instead if this process already sends a file to the account, 503 if it sends too
    many to others. Raises what `make` raises.
    """
    running = _running()
    if status := running.begin(account):
        return _refused(request, status)
    try:
        pieces = make()
    except BaseException:
        running.end(account)
        raise
    return StreamingHttpResponse(
        _Download(pieces, lambda: running.end(account)),
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


class _Running:
    """The accounts that this process sends a file to."""

    def __init__(self) -> None:
        self._accounts: set[str] = set()
        # Reentrant, because the garbage collector may end a download in the middle of `begin`.
        self._lock = threading.RLock()

    def begin(self, account: str) -> int | None:
        """Add a download, or return the status that rejects it."""
        with self._lock:
            if account in self._accounts:
                return 429
            if len(self._accounts) >= AT_ONCE:
                return 503
            self._accounts.add(account)
            return None

    def end(self, account: str) -> None:
        with self._lock:
            self._accounts.discard(account)


_running = PerProcess(_Running)


class _Download(Iterator[bytes]):
    """Pieces of a file. Calls `end` once: after the last one, when closed, or when dropped.

    Nothing closes a response that a middleware replaced, for example by the 503 of a session that
    could not be saved.
    """

    def __init__(self, pieces: Iterator[bytes], end: Callable[[], None]) -> None:
        self._pieces = pieces
        self.close = weakref.finalize(self, end)

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise


def _refused(request: HttpRequest, status: int) -> HttpResponse:
    """The page that tells why the download is rejected."""
    page = render_to_string("invoices/download_refused.html", {"is_own": status == 429})
    response = HttpResponse(page, status=status)
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    response["Cache-Control"] = "private, no-store"
    # Otherwise Django would log a second line.
    log_response(
        "Too many downloads at once.",
        response=response,
        request=request,
        logger=logger,
        level="warning",
    )
    return response
