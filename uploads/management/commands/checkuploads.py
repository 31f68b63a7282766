"""`checkuploads`: check whether the table and the bucket agree."""

import json
from collections.abc import Mapping

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand, argument
from dynamo.management.progress import progress_bars
from dynamo.runtime.terminal import printable
from uploads.check import Difference, Report, check_uploads, forget
from uploads.sources import Destination

#: The findings whose rows `--forget-unfinished` and `--forget-missing` delete.
_FORGOTTEN: tuple[Difference, ...] = ("unfinished", "missing")


class Command(DynamoCommand):
    """Can run while files are uploaded. Costs as much as the operations in `uploads.check`."""

    # The checks concern pages and templates, and take a quarter of the start time.
    requires_system_checks = ()

    help = (
        "Compare the table with the objects below the prefix. missing: done in the table, not in "
        "the bucket; foreign: in the bucket, not in the table; different: not what was uploaded; "
        "unfinished: an upload in progress or interrupted. Exit code 1 on any."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "destination",
            metavar="s3://BUCKET/PREFIX",
            type=argument(Destination.parse),
            help="where the objects were put",
        )
        parser.add_argument(
            "--forget-unfinished",
            action="store_true",
            help="delete unfinished rows and their parts if no process works on them and there is "
            "no object: for files that no longer exist (others are uploaded again from the start)",
        )
        parser.add_argument(
            "--forget-missing",
            action="store_true",
            help="delete the rows of objects that the bucket has lost; the next uploadfiles that "
            "finds their files uploads them again",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: object, destination: Destination, **options: object) -> None:
        with progress_bars() as progress:
            report = check_uploads(destination, progress=progress)
        forgotten = _forgotten(report, destination, options)
        if options["json"]:
            self.stdout.write(_as_json(report, forgotten))
        else:
            for key in forgotten or []:
                url = destination.url_for(key)
                self.stdout.write(f"{'forgotten':<10}  {printable(url)}")
            self._print_text(destination, report)
        if not report.is_sound:
            raise CommandError(f"Table and bucket differ: {_counted(report)}.")

    def _print_text(self, compared: Destination, report: Report) -> None:
        for kind, found in report.findings.items():
            for key in found.listed:
                self.stdout.write(f"{kind:<10}  {printable(compared.url_for(key))}")
            if found.more:
                self.stdout.write(f"{kind:<10}  and {found.more:,} more, not confirmed")
        self.stdout.write(f"Rows {report.rows:,}, objects {report.objects:,}: {_counted(report)}.")


def _forgotten(
    report: Report, destination: Destination, options: Mapping[str, object]
) -> list[str] | None:
    """Delete what the options name, and remove it from the report.

    Returns None if no option is given."""
    asked = [kind for kind in _FORGOTTEN if options[f"forget_{kind}"]]
    forgotten: list[str] = []
    for kind in asked:
        found = report.findings[kind]
        keys = list(forget(destination, found.listed))
        found.listed = sorted({*found.listed} - {*keys})
        report.rows -= len(keys)
        forgotten += keys
    return forgotten if asked else None


def _as_json(report: Report, forgotten: list[str] | None) -> str:
    """Keys are not escaped for a terminal. `more` appears only if a list was cut."""
    more = {kind: found.more for kind, found in report.findings.items() if found.more}
    shown: dict[str, object] = {"rows": report.rows, "objects": report.objects}
    shown |= {kind: found.listed for kind, found in report.findings.items()}
    if forgotten is not None:
        shown["forgotten"] = forgotten
    # json escapes to ASCII, which any encoding of stdout can write.
    return json.dumps(shown | ({"more": more} if more else {}))


def _counted(report: Report) -> str:
    return ", ".join(f"{kind} {found.count:,}" for kind, found in report.findings.items())
