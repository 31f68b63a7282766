"""`dumpdata`: write the items of models as JSON lines, while the site is used."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import islice
from os import SEEK_END
from pathlib import Path
from typing import Any, TextIO, cast

from django.apps import apps
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import dumpdata

from dynamo.client import bulk
from dynamo.client.plain import PlainModel
from dynamo.management.base import DynamoCommand
from dynamo.management.progress import State, add_state, dumpable, progress_bars, replacing
from dynamo.runtime.no_database.base import has_database
from dynamo.wire.types import Item
from dynamo.wire.values import decoded, encoded

#: Django's options that choose rows and how they are written.
_DJANGOS = (
    "indent",
    "primary_keys",
    "use_base_manager",
    "use_natural_foreign_keys",
    "use_natural_primary_keys",
)


class Command(DynamoCommand, dumpdata.Command):
    """Django's command, which also writes items of DynamoDB, as JSON lines.

    A series is written up to the number that its counter has at the beginning.
    """

    help = (
        "Write the items of models as JSON lines, for loaddata. An item that changes meanwhile is "
        "written as before or as after the change. Reads whole tables: 1 read unit per 4 KB. "
        "Models of a relational database are written as Django does, by a call of their own."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_state(parser)

    def handle(self, *labels: str, **options: Any) -> None:
        models = self._models(labels) if labels else [*dumpable().values()]
        if not models or (has_database() and not labels):
            if models:
                self.stderr.write("DynamoDB is left out: name its apps or models.")
            super().handle(*labels, **options)
            return
        if any(options[name] for name in _DJANGOS) or options["format"] not in {"json", "jsonl"}:
            raise CommandError("Items of DynamoDB are written whole, as JSON lines.")
        if options["state"] and not options["output"]:
            raise CommandError("--state needs --output FILE.")
        left_out = self._models(options["exclude"])
        models = [model for model in models if model not in left_out]
        asked = [*(model._meta.label for model in models), str(options["output"])]
        self.state = State(options["state"], asked)
        with ExitStack() as stack:
            self.progress = stack.enter_context(progress_bars(shown=bool(options["output"])))
            self.out: TextIO = cast(TextIO, self.stdout)
            if options["output"] and not self.state.file:
                new = stack.enter_context(replacing(Path(options["output"])))
                self.out = stack.enter_context(new.open("w", encoding="utf-8"))
            elif options["output"]:
                file = Path(options["output"])
                self.out = stack.enter_context(file.open("a", encoding="utf-8"))
                size = self.state.values.get("size", 0)
                if self.out.seek(0, SEEK_END) < size:
                    raise CommandError(
                        f"{file} has lost a part. Delete {options['state']} to begin again."
                    )
                self.out.truncate(size)
                self.out.seek(0, SEEK_END)
            first = self._first(models)
            for model in models:
                if model._meta.label not in self.state.values.get("done", []):
                    self._dump(model, model.dump_filter(first))
        self.state.end()

    def _models(self, labels: Sequence[str]) -> list[type[PlainModel]]:
        """The models of DynamoDB that `labels` name; none if they name other models."""
        found: list[type[PlainModel]] = []
        others = []
        for label in labels:
            models = [
                model
                for known, model in dumpable().items()
                if label.lower() in {known, model._meta.app_label}
            ]
            app = apps.app_configs.get(label)
            if not models or (has_database() and app and any(app.get_models())):
                others.append(label)
            found += models
        if others and (found or not has_database()):
            known = ", ".join(model._meta.label for model in dumpable().values())
            raise CommandError(
                f"A dump of DynamoDB cannot have {', '.join(others)}. Its models: {known}."
            )
        return found

    def _first(self, models: Iterable[type[PlainModel]]) -> list[Item]:
        """The first items of the dump, as they were when the command was first called."""
        if (count := self.state.values.get("first")) is not None:
            with Path(self.out.name).open(encoding="utf-8") as lines:
                return [decoded(line)["Item"] for line in islice(lines, count)]
        first = [pair for model in models for pair in model.dumped_first()]
        for model, item in first:
            self._write(model, item)
        self._save(first=len(first))
        return [item for _model, item in first]

    def _dump(self, model: type[PlainModel], is_dumped: Callable[[Item], bool]) -> None:
        label = model._meta.label
        places = self.state.places()
        left_out = 0
        for page in bulk.pages(model.table(), places=places):
            self._save(places=places)
            items = [item for item in page if is_dumped(item)]
            for item in items:
                self._write(model, item)
            left_out += len(page) - len(items)
            self.progress(f"Items of {label}", len(page))
        if left_out and model._left_out:
            self.stderr.write(f"{left_out:,} items of {label} are left out: {model._left_out}.")
        self._save(places=None, done=[*self.state.values.get("done", []), label])

    def _save(self, **values: object) -> None:
        if self.state.file:
            self.state.save(size=self.out.tell(), **values)

    def _write(self, model: type[PlainModel], item: Item) -> None:
        self.out.write(f'{{"model": "{model._meta.label}", "Item": {encoded(item)}}}\n')
