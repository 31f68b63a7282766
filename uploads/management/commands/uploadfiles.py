"""`uploadfiles`: uploads files and folders to S3, each file exactly once."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.template.defaultfilters import filesizeformat

from dynamo.management.base import up_to
from uploads.management.bar import FilesBar, lines_above_the_bar, progress_bar
from uploads.management.base import UploadCommand, destination
from uploads.preview import preview_files
from uploads.run import upload_files
from uploads.sources import Selection, sources, walk
from uploads.transfer import Result, Summary
from web import s3
from web.signals import stop_on_signals

#: Each worker may send a file and a part at once, which takes two connections.
MAX_WORKERS = s3.CONNECTIONS // 2

NO_BREAK = "\N{NO-BREAK SPACE}"


_PATTERNS = {
    "--include": (
        "take only files whose path below the folder matches P (*, ?, [a-z]; * matches / too); may "
        "be repeated: one match is enough"
    ),
    "--exclude": (
        "leave out files whose path below the folder matches P, whatever --include says; may be "
        "repeated"
    ),
}


class Command(UploadCommand):
    """Uploads the files and prints a summary.

    Ctrl-C and TERM end it with the summary and exit code 130, once the rows of the files in
    progress are released; a second one ends it at once. After any end, another run continues.
    """

    help = (
        "Upload files and folders to S3, each file once. A folder's files keep their paths below "
        "the folder, a file its name. You can run it again, or on several machines at once: files "
        "that were uploaded are skipped. A different object with the same key is a conflict and is "
        "not changed. Exit code 1 on a conflict or failure."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", metavar="PATH", nargs="+", help="a file or a folder")
        parser.add_argument("destination", metavar="s3://BUCKET/PREFIX", type=destination)
        workers: dict[str, Any] = {"metavar": "N", "type": up_to(MAX_WORKERS), "default": 8}
        parser.add_argument("--workers", **workers, help="files at a time, default 8")
        for name, effect in _PATTERNS.items():
            parser.add_argument(name, metavar="P", action="append", default=[], help=effect)
        parser.add_argument(
            "--dry-run", action="store_true", help="print what would be done, write nothing"
        )
        parser.add_argument("--verbose", action="store_true", help="one line per file; as -v 2")
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        self.as_json: bool = options["json"]
        self.dry_run: bool = options["dry_run"]
        self.verbose = options["verbose"] or options["verbosity"] > 1
        paths, to = options["paths"], options["destination"]
        selection = Selection(options["include"], options["exclude"])
        if self.dry_run:
            # HeadObject does not tell a missing bucket from a missing object.
            s3.check_bucket(to.bucket, to.key_prefix)
        with (
            stop_on_signals() as stop,
            progress_bar(lambda: walk(paths, to, selection), stop) as progress,
        ):
            self.progress: FilesBar = progress
            run = preview_files if self.dry_run else upload_files
            summary = run(
                sources(paths, to, selection),
                to,
                workers=options["workers"],
                on_result=self._note,
                on_bytes=progress.add_bytes,
                stop=stop,
            )
        self._print(summary)
        if stop.is_set():
            self.stderr.write("Interrupted: run it again to continue.")
            raise KeyboardInterrupt
        if summary.conflicts or summary.failed:
            raise CommandError(_counted_failures(summary))

    def _note(self, result: Result) -> None:
        self.progress.add_result(result)
        if result.outcome in {"conflict", "failed"}:
            with lines_above_the_bar():
                self.stderr.write(f"{result.outcome}: {result.name}: {result.reason}.")
        elif self.verbose or (self.dry_run and not self.as_json):
            would = "would be " if self.dry_run else ""
            why = f" ({result.reason})" if result.reason else ""
            with lines_above_the_bar():
                # Standard output is kept for the JSON document.
                stream = self.stderr if self.as_json else self.stdout
                stream.write(f"{would}{result.outcome}: {result.name}{why}", _plain)
                # The reader of a pipe sees it now, too.
                stream.flush()

    def _print(self, summary: Summary) -> None:
        if self.as_json:
            self.stdout.write(json.dumps(asdict(summary) | {"seconds": round(summary.seconds, 3)}))
            return
        counts = (
            f"uploaded {summary.uploaded:,}, skipped {summary.skipped:,}, "
            f"conflicts {summary.conflicts:,}, failed {summary.failed:,}"
        )
        size = f"{filesizeformat(summary.bytes).replace(NO_BREAK, ' ')} in {summary.seconds:.1f} s"
        counts = f"Would be: {counts}" if self.dry_run else counts.capitalize()
        self.stdout.write(f"{counts}; {size}.")


def _plain(text: str) -> str:
    """A style for lines on stderr that are not errors, which Django prints in red."""
    return text


def _counted_failures(summary: Summary) -> str:
    parts = [
        f"{count:,} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((summary.conflicts, "conflict"), (summary.failed, "failure"))
        if count
    ]
    return f"{' and '.join(parts)}."
