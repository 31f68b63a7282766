from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from accounts.exceptions import ImportStopped
from accounts.imports.files import COLUMNS, RejectedRows, Row, RowFile, open_rows
from accounts.imports.services import Outcome, Result, import_users, preview_users
from dynamo.management.base import DynamoCommand, up_to
from web.signals import stop_on_signals

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
            help=f"columns: {', '.join(COLUMNS)}; rejected rows go to FILE.rejected.csv|jsonl",
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

    def handle(self, *args: Any, **options: Any) -> None:
        self.counts: Counter[Outcome] = Counter()
        self.last_line = 0
        with (
            _explained_os_errors(),
            open_rows(options["file"]) as source,
            stop_on_signals() as interrupted,
        ):
            rows = takewhile(lambda _row: not interrupted.is_set(), source)
            if options["dry_run"]:
                complaints = self._preview(source, rows, silent=options["json"])
            else:
                complaints = self._import(
                    source, rows, workers=options["workers"], stop=interrupted
                )
            self._print_counts(**options)
        if source.fault:
            complaints.append(source.fault)
        if interrupted.is_set():
            self.stderr.write(" ".join([f"Interrupted at line {self.last_line}.", *complaints]))
            raise KeyboardInterrupt
        if complaints:
            raise CommandError(" ".join(complaints))

    def _import(
        self, source: RowFile, rows: Iterable[Row], *, workers: int, stop: threading.Event
    ) -> list[str]:
        """Import and count the rows, and write the rejected ones to their file."""
        complaints = []
        with RejectedRows(source) as rejected:
            try:
                results = import_users(rows, workers=workers, stop=stop)
                for result in _with_progress(source, results):
                    self.counts[result.outcome] += 1
                    self.last_line = result.row.line
                    if result.outcome is Outcome.REJECTED:
                        rejected.add(result.row, result.reason)
            except ImportStopped as stopped:
                complaints.append(f"{stopped} Run it again to continue.")
        if count := self.counts[Outcome.REJECTED]:
            complaints.append(f"Rejected rows: {count:,}, see {rejected.path}.")
        return complaints

    def _preview(self, source: RowFile, rows: Iterable[Row], *, silent: bool) -> list[str]:
        for result in _with_progress(source, preview_users(rows)):
            self.counts[result.outcome] += 1
            self.last_line = result.row.line
            if result.outcome is Outcome.REJECTED and not silent:
                with tqdm.external_write_mode(file=sys.stdout):
                    self.stdout.write(f"Line {result.row.line}: {result.reason}")
        count = self.counts[Outcome.REJECTED]
        return [f"Rows that would be rejected: {count:,}."] if count else []

    def _print_counts(self, *, dry_run: bool, **options: Any) -> None:
        if options["json"]:
            self.stdout.write(json.dumps({outcome: self.counts[outcome] for outcome in Outcome}))
        else:
            counts = ", ".join(f"{outcome} {self.counts[outcome]:,}" for outcome in Outcome)
            self.stdout.write(f"Would be: {counts}." if dry_run else f"{counts.capitalize()}.")


def _with_progress(source: RowFile, results: Iterable[Result]) -> Iterator[Result]:
    """`results`; on a terminal also a bar of how much of the file was read."""
    with tqdm(
        total=source.size_bytes, unit="B", unit_scale=True, disable=not sys.stderr.isatty()
    ) as bar:
        for result in results:
            yield result
            bar.update(source.read_bytes - bar.n)


@contextmanager
def _explained_os_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of our output left; the files are fine
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.") from error
