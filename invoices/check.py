"""The check of invoices: that of their series, for all accounts or for one."""

from __future__ import annotations

from collections.abc import Iterator

from invoices.documents import series_of
from invoices.models import InvoiceItem
from invoices.years import YEARS
from sequences.check import Progress, Sizes, check_series
from sequences.seriesreport import SeriesReport


def check_invoices(
    account: str | None = None, *, progress: Progress | None = None, sizes: Sizes | None = None
) -> Iterator[SeriesReport]:
    """The report of each series, in the order of their names; or of the series of `account`.

    `counts` has the invoices by status. For one account a Query goes out for each year that an
    invoice may have, with a counter or without: a lost counter must be found too. For the other
    costs see `sequences.check.check_series`.
    """
    series = None if account is None else [series_of(account, year) for year in YEARS]
    return check_series(
        InvoiceItem, series=series, count_by="status", progress=progress, sizes=sizes
    )
