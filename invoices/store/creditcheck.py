"""Checks that each credit note and the state of its invoice name each other.

They differ if one of the tables `invoices` and `invoicestates` was restored to another second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from dynamo import DamagedItem
from dynamo.extending import Findings, Item, Spool, bulk
from invoices.document.invoice import CREDIT_PREFIX, label_of, parse_label, series_of
from invoices.exceptions import UnknownInvoice
from invoices.models import InvoiceState
from invoices.store.lists import check_invoices, states_of
from invoices.store.records import find_record
from sequences.extending import Progress, SeriesReport, Sizes

_NOTE, _STATE = "note", "state"


def check_with_credits(
    account: str | None = None, *, progress: Progress | None = None, sizes: Sizes | None = None
) -> Iterator[SeriesReport]:
    """As `check_invoices`, with the labels of invoices with such a difference as `credits`.

    Besides its costs, a scan of `invoicestates`, or, for one account, a Query for each year, and
    for each suspect invoice 1 request and 6 read units.
    """
    with Spool() as claims:

        def claim_note(item: Item) -> None:
            request_id = item.get("requestId", {}).get("S", "")
            if request_id.startswith(CREDIT_PREFIX):
                owner = item["series"]["S"].rpartition("#")[0]
                claims.add(owner, request_id.removeprefix(CREDIT_PREFIX), _NOTE)

        wrong: dict[str, Findings[str]] | None = None
        for report in check_invoices(account, on_item=claim_note, progress=progress, sizes=sizes):
            if wrong is None:
                for item in _states(account):
                    _claim_state(item, claims)
                wrong = _differences(claims)
            if found := wrong.get(report.series):
                report.others["credits"] = found
            yield report


def _states(account: str | None) -> Iterator[Item]:
    if account is not None:
        yield from states_of(account)
        return
    attributes = ("series", "number", "creditedBy")
    for page in bulk.pages(InvoiceState.table(), attributes):
        yield from page


def _claim_state(item: Item, claims: Spool) -> None:
    owner, _, year = item["series"]["S"].rpartition("#")
    number = item["number"]["N"]
    if "creditedBy" in item and year.isdigit() and number.isdigit():
        claims.add(owner, label_of(int(year), int(number)), _STATE)


def _differences(claims: Spool) -> dict[str, Findings[str]]:
    """The labels of invoices of which only one is there, by series."""
    wrong: defaultdict[str, Findings[str]] = defaultdict(Findings)
    for (owner, label), entries in groupby(claims, key=itemgetter(0, 1)):
        if {entry[2] for entry in entries} != {_NOTE, _STATE} and _differ(owner, label):
            wrong[series_of(owner, parse_label(label)[0])].add(label)
    return wrong


def _differ(account: str, label: str) -> bool:
    """Whether it is so at one instant: a credit note may be issued while the tables are read."""
    try:
        record = find_record(account, label)
    except UnknownInvoice:
        return False  # its series has a gap, which is reported
    except DamagedItem:
        return True
    return bool(record.credit_note) != bool(record.state.credited_by)
