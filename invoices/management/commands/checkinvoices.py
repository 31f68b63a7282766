"""`checkinvoices`: check that the numbers of each series are 1, 2, 3 … without a gap."""

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from dynamo.management.progress import progress_bars
from invoices.management.base import find_owner
from invoices.store.check import check_invoices
from sequences.check import SeriesReport
from sequences.management.base import SeriesCheckCommand


class Command(SeriesCheckCommand):
    """It can run while invoices are issued. For its costs see `store.check.check_invoices`."""

    help = (
        "Check that the numbers of each series go from 1, or where it began, to its counter, each "
        "on one invoice, that each request id has one invoice, and that each credit note and the "
        "state of its invoice name each other. Exits 1 if something is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--user", metavar="WHO", help="only the invoices of this account, which may be deleted"
        )
        super().add_arguments(parser)

    def reports(self, options: dict[str, Any]) -> Iterator[SeriesReport]:
        account = find_owner(options["user"])[0] if options["user"] else None
        with progress_bars(shown=not options["json"]) as progress:
            yield from check_invoices(account, progress=progress)

    def counts(self, report: SeriesReport) -> dict[str, int]:
        voided = report.counts["voided"]
        return {"issued": report.items - voided, "voided": voided}
