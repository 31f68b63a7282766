"""Checks the series of invoices, and that credit notes and the states of their invoices agree.

They differ if one of the tables `invoices` and `invoicestates` was restored to another time.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from dynamo import DamagedItem
from dynamo.tables.findings import Findings, Progress, Spool, confirmed, scanned, unseen
from dynamo.wire.types import Item
from dynamo.wire.values import text_of
from invoices.document.fields import YEARS
from invoices.document.invoice import CREDIT_PREFIX, label_of, parse_label, series_of
from invoices.exceptions import UnknownInvoice
from invoices.models import InvoiceItem, InvoiceState
from invoices.store.lists import states_of
from invoices.store.records import find_record
from sequences import check_series
from sequences.check import SeriesReport


def check_invoices(
    account: str | None = None, *, progress: Progress = unseen
) -> Iterator[SeriesReport]:
    """The report of each series, in the order of their names; or of the series of `account`.

    `counts` has the number of invoices by status. `others["credits"]` has the labels of invoices
    whose state and credit note disagree.

    Costs as much as `sequences.check_series` and a scan of `invoicestates`. For one account, it
    costs two Queries for each of `YEARS`, also without a counter, because a lost counter must be
    found. Each suspect invoice costs 1 request and 6 read units.
    """
    series = None if account is None else [series_of(account, year) for year in YEARS]
    with Spool() as claims:

        def claim_note(item: Item) -> None:
            request_id = text_of(item, "requestId")
            if request_id.startswith(CREDIT_PREFIX):
                owner = item["series"]["S"].rpartition("#")[0]
                claims.add(owner, request_id.removeprefix(CREDIT_PREFIX), "note")

        wrong: dict[str, Findings[str]] | None = None
        for report in check_series(
            InvoiceItem, series=series, count_by="status", on_item=claim_note, progress=progress
        ):
            if wrong is None:
                attributes = ("series", "number", "creditedBy")
                table = InvoiceState.table()
                for item in states_of(account) if account else scanned(table, attributes, unseen):
                    owner, _hash, year = item["series"]["S"].rpartition("#")
                    number = item["number"]["N"]
                    if "creditedBy" in item and year.isdigit() and number.isdigit():
                        claims.add(owner, label_of(int(year), int(number)), "state")
                wrong = _differences(claims, progress)
            if found := wrong.get(report.series):
                report.others["credits"] = found
            yield report


def _differences(claims: Spool, progress: Progress) -> dict[str, Findings[str]]:
    """The labels of invoices whose credit note and state disagree about each other, by series."""
    by_invoice = groupby(claims, key=itemgetter(0, 1))
    suspects = (
        invoice for invoice, entries in by_invoice if len({entry[2] for entry in entries}) == 1
    )
    wrong: defaultdict[str, Findings[str]] = defaultdict(Findings)
    for found in confirmed(suspects, _differing, progress):
        for owner, label in found:
            wrong[series_of(owner, parse_label(label)[0])].add(label)
    return wrong


def _differing(invoice: tuple[str, str]) -> list[tuple[str, str]]:
    """The invoice if the two differ at one instant. A credit note may be issued in the meantime."""
    try:
        record = find_record(*invoice)
    except UnknownInvoice:
        return []  # its series has a gap, which `check_series` reports
    except DamagedItem:
        return [invoice]
    return [] if bool(record.credit_note) == bool(record.state.credited_by) else [invoice]
