"""`checkinvoices`: whether every series has its numbers without a gap, each once."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from dynamo.findings import Findings
from invoices.invoicecheck import check_invoices
from invoices.management.invoicing import find_account
from invoices.seriescheck import SeriesReport
from sequences.management.base import SequenceCommand

#: How many findings of a kind the text for people names.
SHOWN = 10


class Command(SequenceCommand):
    """Checks, safe while invoices are issued. Costs: `check_invoices`."""

    help = (
        "Check that the numbers of each series are 1, 2, 3 … up to its counter, each on one "
        "invoice, and that no request has two. Exit code 1 where something is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take whose series, and the form of the answer."""
        parser.add_argument(
            "--user", metavar="WHO", help="only this account's; it may be deleted by now"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object a series")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, print each series as it is judged, and end with exit code 1 where one is wrong."""
        account = find_account(options["user"]) if options["user"] else None
        shape = _as_json if options["json"] else _as_line
        shown = sys.stderr.isatty() and not options["json"]
        wrong = 0
        with tqdm(desc="Items read", unit="", disable=not shown) as bar:
            for report in check_invoices(account, progress=bar.update):
                self.stdout.write(shape(report))
                wrong += not report.is_sound
        if wrong:
            raise CommandError(f"{wrong} series {'is' if wrong == 1 else 'are'} damaged.")


def _as_json(report: SeriesReport) -> str:
    """The object of the contract; what else is wrong, and how many more, only where there is."""
    shown: dict[str, Any] = {
        "series": report.series,
        "last": report.last,
        "issued": report.issued,
        "voided": report.voided,
        "gaps": report.gaps.listed,
        "duplicates": report.duplicates.listed,
    }
    others: dict[str, Findings[Any]] = {"beyond": report.beyond, "guards": report.guards}
    shown |= {name: found.listed for name, found in others.items() if found}
    kinds: dict[str, Findings[Any]] = {
        "gaps": report.gaps,
        "duplicates": report.duplicates,
        **others,
    }
    more = {name: found.more for name, found in kinds.items() if found.more}
    return json.dumps(shown | ({"more": more} if more else {}), ensure_ascii=False)


def _as_line(report: SeriesReport) -> str:
    last = "no number in its counter" if report.last is None else f"last {report.last}"
    parts = [f"{report.series}  {last}, {report.issued} issued, {report.voided} voided"]
    for what, found in (
        ("gaps", report.gaps),
        ("duplicates", report.duplicates),
        ("beyond the counter", report.beyond),
        ("wrong guards", report.guards),
    ):
        if found:
            parts.append(f"{what}: {_named(found)}")
    return "; ".join(parts)


def _named(found: Findings[Any]) -> str:
    more = found.count - SHOWN
    named = ", ".join(map(str, found.listed[:SHOWN]))
    return f"{named} and {more:,} more" if more > 0 else named
