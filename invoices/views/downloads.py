"""A year's invoices as one file: a table, or PDFs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.views import View

from invoices.documents import Invoice
from invoices.exports import as_csv, as_zip
from invoices.records import all_invoices
from invoices.views.pages import OwnInvoicesMixin


class YearDownloadView(OwnInvoicesMixin, View, ABC):
    """All invoices of a year as one file, oldest first, made while it is sent."""

    content_type = ""
    ending = ""

    @abstractmethod
    def file(self, invoices: Iterable[Invoice]) -> Iterator[bytes]:
        """The file's pieces."""

    def get(self, request: HttpRequest, year: int) -> StreamingHttpResponse:
        """The file; 404 where the year has no invoice."""
        invoices = all_invoices(self.account, year, oldest_first=True)
        # The first is read before anything is sent, as long as there can be another answer.
        first = next(invoices, None)
        if first is None:
            raise Http404("There is no invoice of this year.")
        return StreamingHttpResponse(
            self.file(chain([first], invoices)),
            content_type=self.content_type,
            headers={
                "Content-Disposition": f'attachment; filename="invoices-{year}.{self.ending}"',
                "Cache-Control": "private, no-store",
            },
        )


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
