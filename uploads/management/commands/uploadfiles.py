"""`uploadfiles`: uploads files and folders to S3, each file exactly once."""

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.template.defaultfilters import filesizeformat
from tqdm import tqdm

from dynamo.management.base import DynamoCommand, argument, up_to
from dynamo.management.progress import stop_on_signals
from dynamo.runtime.terminal import quantity
from uploads import claims, s3
from uploads.run import upload_files
from uploads.sources import Destination, Result, Selection, Source, shuffled, walk
from uploads.transfer import Summary

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


class Command(DynamoCommand):
    """Uploads the files and prints a summary.

    Ctrl-C and TERM end it with the summary and exit code 130, after the rows of the files in
    progress are released. A second signal ends it at once. In any case, another run can continue.
    """

    # The checks concern pages and templates, and take a quarter of the start time.
    requires_system_checks = ()

    help = (
        "Upload files and folders to S3, each file once. A folder's files keep their paths below "
        "the folder, a file its name. You can run it again, or on several machines at once: files "
        "that were uploaded are skipped. A different object with the same key is a conflict and is "
        "not changed. Exit code 1 on a conflict or failure."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", metavar="PATH", nargs="+", help="a file or a folder")
        parser.add_argument(
            "destination",
            metavar="s3://BUCKET/PREFIX",
            type=argument(Destination.parse),
            help="where the objects are put",
        )
        workers: dict[str, Any] = {"metavar": "N", "type": up_to(MAX_WORKERS), "default": 8}
        parser.add_argument("--workers", **workers, help="files at a time, default 8")
        for name, effect in _PATTERNS.items():
            parser.add_argument(name, metavar="P", action="append", default=[], help=effect)
        parser.add_argument(
            "--follow-links",
            action="store_true",
            help="follow symbolic links that leave the folder: only if nobody else can write to it",
        )
        parser.add_argument(
            "--content-type",
            metavar="TYPE",
            type=_content_type,
            help="of all objects, such as text/plain; by default it follows from the file's name",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print what would be done, write nothing"
        )
        parser.add_argument("--verbose", action="store_true", help="one line per file; as -v 2")
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")

    def handle(self, *args: object, **options: Any) -> None:
        self.as_json: bool = options["json"]
        self.dry_run: bool = options["dry_run"]
        self.verbose = options["verbose"] or options["verbosity"] > 1
        to = replace(options["destination"], content_type=options["content_type"] or "")
        selection = Selection(options["include"], options["exclude"])
        follow_links = options["follow_links"]
        found = partial(walk, options["paths"], to, selection, follow_links=follow_links)
        if self.dry_run:
            # HeadObject does not distinguish a missing bucket from a missing object.
            s3.check_bucket(to.bucket, to.key_prefix)
            # If DynamoDB does not answer, the error is reported once, and not for each file.
            claims.read(to.url_for(""))
        shown = sys.stderr.isatty()
        with (
            stop_on_signals() as stop,
            _FilesBar(unit="B", unit_scale=True, disable=not shown) as bar,
        ):
            self.progress = bar
            if shown:
                count = partial(bar.count, found(), stop)
                threading.Thread(target=count, name="counting", daemon=True).start()
            began = time.monotonic()
            summary = upload_files(
                shuffled(found()),
                to,
                workers=options["workers"],
                on_result=self._note,
                on_bytes=bar.add_bytes,
                stop=stop,
                is_dry=self.dry_run,
            )
            bar.refresh()
        self._print(summary, time.monotonic() - began)
        if stop.is_set():
            self.stderr.write("Interrupted: run it again to continue.")
            raise KeyboardInterrupt
        if summary.conflicts or summary.failed:
            raise CommandError(_counted_failures(summary))

    def _note(self, result: Result) -> None:
        self.progress.add_result(result)
        # A link that is not followed has no key.
        if result.outcome in {"conflict", "failed"} or not result.key:
            with tqdm.external_write_mode(file=sys.stderr):
                self.stderr.write(f"{result.outcome}: {result.name}: {result.reason}.")
        elif self.verbose or (self.dry_run and not self.as_json):
            would = "would be " if self.dry_run else ""
            why = f" ({result.reason})" if result.reason else ""
            with tqdm.external_write_mode(file=sys.stderr):
                # Standard output is kept for the JSON document. Django prints errors in red.
                stream = self.stderr if self.as_json else self.stdout
                stream.write(f"{would}{result.outcome}: {result.name}{why}", str)
                # The reader of a pipe gets the line at once as well.
                stream.flush()

    def _print(self, summary: Summary, seconds: float) -> None:
        if self.as_json:
            self.stdout.write(json.dumps(asdict(summary) | {"seconds": round(seconds, 3)}))
            return
        counts = (
            f"uploaded {summary.uploaded:,}, skipped {summary.skipped:,}, "
            f"conflicts {summary.conflicts:,}, failed {summary.failed:,}"
        )
        size = f"{filesizeformat(summary.bytes).replace(NO_BREAK, ' ')} in {seconds:.1f} s"
        counts = f"Would be: {counts}" if self.dry_run else counts.capitalize()
        self.tell(f"{counts}; {size}.")


class _FilesBar(tqdm):
    """A bar of the files and bytes of a run."""

    _files = 0
    _of = ""

    def count(self, found: Iterable[Source | Result], stop: threading.Event) -> None:
        """Count everything, for the remaining time. Runs in a separate thread."""
        files = size = 0
        for source in found:
            if stop.is_set():
                return
            files += 1
            size += source.size if isinstance(source, Source) else 0
        self.total = size
        self._of = f"/{files:,}"
        self.add_files(0)

    def add_files(self, count: int) -> None:
        self._files += count
        self.set_description_str(f"{self._files:,}{self._of} files", refresh=False)

    def add_bytes(self, count: int) -> None:
        self.update(count if self.total is None else min(count, self.total - self.n))

    def add_result(self, result: Result) -> None:
        self.add_files(1)
        if result.outcome != "uploaded":
            # Some of its bytes may not have been sent, but none is left to send.
            self.add_bytes(result.size)


def _content_type(text: str) -> str:
    if not re.fullmatch(r"[\w.+-]+/[\w.+-]+( *; *[!-~]+)*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a content type such as text/plain.")
    return text


def _counted_failures(summary: Summary) -> str:
    counts = {"conflict": summary.conflicts, "failure": summary.failed}.items()
    return f"{' and '.join(quantity(count, noun) for noun, count in counts if count)}."
