"""`loaddata`: store the items of a file of `dumpdata` or of an export by AWS."""

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import loaddata

from dynamo.client.plain import PlainModel
from dynamo.client.tally import CountingPool
from dynamo.exceptions import AlreadyExists, DamagedItem, Rejected, Taken
from dynamo.management.base import DynamoCommand, model_type
from dynamo.management.progress import State, add_state, dumpable, progress_bars
from dynamo.runtime.no_database.base import has_database
from dynamo.runtime.terminal import printable, quantity
from dynamo.wire.types import Item
from dynamo.wire.values import UNUSABLE, decoded

THREADS = 8
#: The state is stored each time this many lines are loaded.
BATCH = 256

#: Django's options that choose rows or where to look for them.
_DJANGOS = ("app_label", "exclude", "format", "ignore")

_Line = tuple[str, type[PlainModel], Item]


class Command(DynamoCommand, loaddata.Command):
    """Django's command, which also reads the items of our `dumpdata` and of DynamoDB's exports."""

    help = (
        "Load files of dumpdata, or of an export of DynamoDB to S3 (full, in DynamoDB's JSON; it "
        "may be compressed by gzip). Each item is stored with its guard items under its key, with "
        "a new version. Items that are stored already stay. Rejects an item if another one with "
        "other values has its key or a unique value; exits 1 then. Harmless to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--model",
            metavar="APP.MODEL",
            type=model_type(PlainModel, "stored", lambda model: not model._not_dumped),
            help="of the items of an export to S3, which does not name it",
        )
        add_state(parser)

    def handle(self, *files: str, **options: Any) -> None:
        others = [file for file in files if not _has_items(file)]
        if others and has_database() and len(others) == len(files):
            super().handle(*files, **options)
            return
        if others:
            if not Path(others[0]).exists():
                raise CommandError(f"There is no file {others[0]}.")
            raise CommandError(f"{others[0]} is not a file of items of DynamoDB, as JSON lines.")
        if any(options[name] for name in _DJANGOS):
            raise CommandError("Items of DynamoDB are loaded from the files that are named, whole.")
        state = State(options["state"], files)
        stored = rejected = 0
        before = start = state.values.get("lines", 0)
        lines = islice(_lines(files, options["model"]), start, None)
        with CountingPool(THREADS) as pool, progress_bars() as progress:
            for batch in pool.batches(_restored, lines, BATCH):
                for line, outcome in batch:
                    if isinstance(outcome, Exception):
                        rejected += 1
                        self.stderr.write(printable(f"{line[0]}: {outcome}"))
                    else:
                        stored += outcome
                before += len(batch)
                state.save(lines=before)
                progress("Items loaded", len(batch))
        state.end()
        read = quantity(before - start, "item")
        self.tell(f"{read} read: {stored:,} stored, {rejected:,} rejected.")
        if rejected:
            raise CommandError(f"{quantity(rejected, 'item')} could not be loaded.")


def _open(file: str) -> TextIO:
    compressed = file.endswith(".gz")
    return (gzip.open if compressed else open)(file, "rt", encoding="utf-8")


def _has_items(file: str) -> bool:
    """Whether `file` begins like the files of `dumpdata` and of exports."""
    try:
        with _open(file) as lines:
            return bool({"Item", "Keys"} & json.loads(next(lines, "{}")).keys())
    except (OSError, *UNUSABLE):
        return False


def _lines(files: tuple[str, ...], named: type[PlainModel] | None) -> Iterator[_Line]:
    models = dumpable()
    for file in files:
        with _open(file) as lines:
            for number, text in enumerate(lines, 1):
                where = f"{file}:{number}"
                try:
                    line = decoded(text)
                    label = line.get("model", "")
                    model = models[label.lower()] if label else named
                    item = line["Item"]
                except (KeyError, *UNUSABLE) as error:
                    raise CommandError(f"{where}: {error}") from error
                if model is None:
                    raise CommandError(f"{where} names no model: give --model APP.MODEL.")
                yield where, model, item


def _restored(line: _Line) -> bool | Exception:
    _where, model, item = line
    try:
        return model.restore(item)
    except Rejected as error:
        # Other errors concern all items.
        if error.code != "ValidationException":
            raise
        return error
    except (AlreadyExists, Taken, DamagedItem, *UNUSABLE) as error:
        return error
