import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from accounts.exceptions import ImportStopped
from accounts.imports.files import Row, columns, open_rows, rejected_rows
from accounts.imports.services import Outcome, Result, import_users, preview_users
from dynamo.management.base import DynamoCommand, up_to
from dynamo.management.progress import progress_bars, stop_on_signals

MAX_WORKERS = 64


class Command(DynamoCommand):
    """Ctrl-C and TERM let the rows under way finish, print the counts and exit with 130.

    Whatever ended an import, running it again continues it.
    """

    help = "Create accounts from a CSV or JSON Lines file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file",
            metavar="FILE.csv|FILE.jsonl",
            type=Path,
            help=f"columns: {', '.join(columns())}; rejected rows go to FILE.rejected.csv|jsonl",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="write nothing, print what would be rejected; 3 read units per row",
        )
        parser.add_argument(
            "--workers",
            type=up_to(MAX_WORKERS),
            default=8,
            help=f"1 to {MAX_WORKERS} threads, default 8",
        )
        parser.add_argument("--json", action="store_true", help="print the counts as JSON")

    def handle(
        self, *args: object, file: Path, workers: int, dry_run: bool, **options: object
    ) -> None:
        self.counts: Counter[Outcome] = Counter()
        self.last_line = 0
        with open_rows(file) as source, stop_on_signals() as interrupted:
            rows = takewhile(lambda _row: not interrupted.is_set(), source)
            if dry_run:
                show = (lambda _row, _reason: None) if options["json"] else self._show
                complaints = self._count(preview_users(rows), show)
                called, place = "Rows that would be rejected", ""
            else:
                results = import_users(rows, workers=workers, stop=interrupted)
                with rejected_rows(source) as reject:
                    complaints = self._count(results, reject)
                called, place = "Rejected rows", f", see {source.rejected}"
            if count := self.counts[Outcome.REJECTED]:
                complaints.append(f"{called}: {count:,}{place}.")
            self._print_counts(dry_run=dry_run, **options)
        if source.fault:
            complaints.append(source.fault)
        if interrupted.is_set():
            self.stderr.write(" ".join([f"Interrupted at line {self.last_line}.", *complaints]))
            raise KeyboardInterrupt
        if complaints:
            raise CommandError(" ".join(complaints))

    def _count(self, results: Iterable[Result], reject: Callable[[Row, str], None]) -> list[str]:
        """Count the results, and hand the rejected ones to `reject`. Returns what went wrong."""
        with progress_bars() as progress:
            try:
                for result in results:
                    self.counts[result.outcome] += 1
                    self.last_line = result.row.line
                    if result.outcome is Outcome.REJECTED:
                        reject(result.row, result.reason)
                    progress("Rows", 1)
            except ImportStopped as stopped:
                return [f"{stopped} Run it again to continue."]
        return []

    def _show(self, row: Row, reason: str) -> None:
        with tqdm.external_write_mode(file=sys.stdout):
            self.stdout.write(f"Line {row.line}: {reason}")

    def _print_counts(self, *, dry_run: bool, **options: object) -> None:
        if options["json"]:
            self.stdout.write(json.dumps({outcome: self.counts[outcome] for outcome in Outcome}))
        else:
            counts = ", ".join(f"{outcome} {self.counts[outcome]:,}" for outcome in Outcome)
            self.tell(f"Would be: {counts}." if dry_run else f"{counts.capitalize()}.")
