"""`checkuploads`: whether the table and the bucket tell the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.terminal import printable
from uploads.checking import KINDS, Kind, Report, check_uploads
from uploads.destination import Destination
from uploads.forgetting import forget_missing, forget_unfinished
from uploads.management.base import UploadCommand, destination
from web.progress import progress_bars

#: What each option forgets, and how.
_FORGETS: dict[str, tuple[Kind, Callable[[Destination, Iterable[str]], Iterator[str]]]] = {
    "forget_unfinished": ("unfinished", forget_unfinished),
    "forget_missing": ("missing", forget_missing),
}


class Command(UploadCommand):
    """Checks, safe while files are uploaded. Costs: `check_uploads`, `uploads.forgetting`."""

    help = (
        "Compare the table with the objects below the prefix. missing: done in the table, not in "
        "the bucket; foreign: in the bucket, unknown to the table; different: not what was "
        "uploaded; unfinished: begun and not done. Exit code 1 on any."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to compare, and the form of the answer."""
        parser.add_argument("destination", metavar="s3://BUCKET/PREFIX", type=destination)
        parser.add_argument(
            "--forget-unfinished",
            action="store_true",
            help="remove unfinished rows and their parts, where nobody works on them and no object "
            "is there: for files that will not come again (others begin anew)",
        )
        parser.add_argument(
            "--forget-missing",
            action="store_true",
            help="remove the rows of objects that the bucket has lost: where their files are still "
            "there, the next uploadfiles uploads them again",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare, print, and end with exit code 1 where something is wrong."""
        with progress_bars(shown=sys.stderr.isatty()) as progress:
            report = check_uploads(options["destination"], progress=progress)
        forgotten = _forgotten(report, options)
        if options["json"]:
            self.stdout.write(_as_json(report, forgotten))
        else:
            for key in forgotten or []:
                url = options["destination"].url_for(key)
                self.stdout.write(f"{'forgotten':<10}  {printable(url)}")
            self._print_text(options["destination"], report)
        if not report.is_sound:
            raise CommandError(f"Table and bucket differ: {_counted(report)}.")

    def _print_text(self, compared: Destination, report: Report) -> None:
        for kind, found in report.findings.items():
            for key in found.listed:
                self.stdout.write(f"{kind:<10}  {printable(compared.url_for(key))}")
            if found.more:
                self.stdout.write(f"{kind:<10}  and {found.more:,} more, not confirmed")
        self.stdout.write(f"Rows {report.rows:,}, objects {report.objects:,}: {_counted(report)}.")


def _forgotten(report: Report, options: dict[str, Any]) -> list[str] | None:
    """Forget what is to be, and take it from the report; what it was, None where nothing is."""
    asked = [_FORGETS[option] for option in _FORGETS if options[option]]
    forgotten: list[str] = []
    for kind, forget in asked:
        found = report.findings[kind]
        keys = list(forget(options["destination"], found.listed))
        gone = set(keys)
        found.listed = [key for key in found.listed if key not in gone]
        report.rows -= len(keys)
        forgotten += keys
    return forgotten if asked else None


def _as_json(report: Report, forgotten: list[str] | None) -> str:
    """Keys as they are; how many more there are only where there are more."""
    more = {kind: found.more for kind, found in report.findings.items() if found.more}
    shown: dict[str, Any] = {"rows": report.rows, "objects": report.objects}
    shown |= {kind: found.listed for kind, found in report.findings.items()}
    if forgotten is not None:
        shown["forgotten"] = forgotten
    # In ASCII, which any terminal's encoding can write.
    return json.dumps(shown | ({"more": more} if more else {}))


def _counted(report: Report) -> str:
    return ", ".join(f"{kind} {report.findings[kind].count:,}" for kind in KINDS)
