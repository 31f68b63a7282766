"""What the commands that read or write whole models share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.client import bulk
from dynamo.client.plain import PlainModel, all_models
from dynamo.wire.types import Item
from dynamo.wire.values import decoded, encoded


def dumpable() -> dict[str, type[PlainModel]]:
    """The models whose items a dump has, by their label in small letters."""
    models = [model for model in all_models() if not model._not_dumped]
    tables = {model: model.table() for model in models}
    return {
        model._meta.label_lower: model
        for model in sorted(models, key=lambda model: model._meta.label)
        # A base has the items of its subclasses in the same table.
        if not any(tables.get(base) == tables[model] for base in model.__mro__[1:])
    }


def add_state(parser: CommandParser) -> None:
    parser.add_argument(
        "--state",
        metavar="FILE",
        help="where to keep how far it came; the same command continues there after an end by "
        "Ctrl-C or an error",
    )


class State:
    """The progress of a command. If a `file` is named, it is stored there for the next call."""

    def __init__(self, file: str | None, asked: Sequence[str]) -> None:
        self.file = file and Path(file)
        self.values: dict[str, Any] = {"asked": [*asked]}
        if self.file and self.file.exists():
            try:
                values = decoded(self.file.read_text(encoding="utf-8"))
                is_ours = values["asked"] == self.values["asked"]
            except (LookupError, TypeError, ValueError):
                is_ours = False
            if not is_ours:
                raise CommandError(f"{file} is of another call. Delete it to begin again.")
            self.values = values

    def save(self, **values: object) -> None:
        """Keep `values`, with those that were kept before."""
        self.values |= values
        if self.file:
            new = self.file.with_name(f"{self.file.name}.new")
            new.write_text(encoded(self.values), encoding="utf-8")
            new.replace(self.file)

    def places(self) -> list[Item | None]:
        """The `places` of `bulk.pages` that were kept; else those before the first page."""
        return self.values.get("places") or [{}] * bulk.SEGMENTS

    def end(self) -> None:
        """Delete the state, because the command is complete."""
        if self.file:
            self.file.unlink(missing_ok=True)
