"""A year's invoices as one file: a table, or PDFs; and the limit to downloads at once.

A download holds a thread of the server until its last byte is taken, and its reader may be slow. So
a process sends one file at a time to each account, and a few in all.
"""

from __future__ import annotations

import logging
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils.log import log_response
from django.views import View

from dynamo.processes import PerProcess
from invoices.documents import Invoice
from invoices.exports import as_csv, as_zip
from invoices.records import all_invoices
from invoices.views.pages import OwnInvoicesMixin

#: Downloads at once in a process: fewer than the server has threads.
AT_ONCE = 3

RETRY_AFTER_SECONDS = 10

logger = logging.getLogger(__name__)


def stream(
    request: HttpRequest,
    account: str,
    make: Callable[[], Iterator[bytes]],
    content_type: str,
    name: str,
) -> HttpResponseBase:
    """The file `name`, whose pieces `make` returns, as a download of `account`.

    Answers 429 instead if the account has a download under way in this process, 503 if too many
    others have. Raises what `make` raises.
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
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
        },
    )


class _Running:
    """The accounts that this process sends a file to."""

    def __init__(self) -> None:
        self._accounts: set[str] = set()
        # Reentrant, because the garbage collector may end a download in the middle of `begin`.
        self._lock = threading.RLock()

    def begin(self, account: str) -> int | None:
        """Note a download; or the status that refuses it."""
        with self._lock:
            if account in self._accounts:
                return 429
            if len(self._accounts) >= AT_ONCE:
                return 503
            self._accounts.add(account)
            return None

    def end(self, account: str) -> None:
        """Note that it has ended."""
        with self._lock:
            self._accounts.discard(account)


_running = PerProcess(_Running)


class _Download(Iterator[bytes]):
    """Pieces of a file; calls `end` once: after the last, when it is closed, or when it is dropped.

    Nobody closes a response that a middleware replaced, as by the 503 of a session that could not
    be saved.
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
    """The page that says why there is no file now."""
    page = render_to_string("invoices/download_refused.html", {"is_own": status == 429})
    response = HttpResponse(page, status=status)
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    response["Cache-Control"] = "private, no-store"
    # Marked as logged, or Django logs a line of its own.
    log_response(
        "Too many downloads at once.",
        response=response,
        request=request,
        logger=logger,
        level="warning",
    )
    return response


class YearDownloadView(OwnInvoicesMixin, View, ABC):
    """All invoices of a year as one file, oldest first, made while it is sent."""

    content_type = ""
    ending = ""

    @abstractmethod
    def file(self, invoices: Iterable[Invoice]) -> Iterator[bytes]:
        """The file's pieces."""

    def get(self, request: HttpRequest, year: int) -> HttpResponseBase:
        """The file; 404 where the year has no invoice."""

        def make() -> Iterator[bytes]:
            invoices = all_invoices(self.account, year, oldest_first=True)
            # The first is read before anything is sent, as long as there can be another answer.
            first = next(invoices, None)
            if first is None:
                raise Http404("There is no invoice of this year.")
            return self.file(chain([first], invoices))

        name = f"invoices-{year}.{self.ending}"
        return stream(request, self.account, make, self.content_type, name)


class InvoicesCsvView(YearDownloadView):
    """A year as a table."""

    content_type = "text/csv; charset=utf-8"
    ending = "csv"

    def file(self, invoices: Iterable[Invoice]) -> Iterator[bytes]:
        """A row for each invoice."""
        return as_csv(invoices)


class InvoicesZipView(YearDownloadView):
    """A year as PDFs."""

    content_type = "application/zip"
    ending = "zip"

    def file(self, invoices: Iterable[Invoice]) -> Iterator[bytes]:
        """A PDF for each invoice."""
        return as_zip(invoices)
