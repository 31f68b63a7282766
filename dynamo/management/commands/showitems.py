"""`showitems`: print a page of the items of a model."""

import json
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.client.plain import PlainModel
from dynamo.exceptions import DamagedItem
from dynamo.management.base import DynamoCommand, model_type, positive
from dynamo.model.objects import is_secret
from dynamo.model.pages import Results
from dynamo.runtime.terminal import printable
from dynamo.wire.fields import ShownEncoder
from dynamo.wire.values import UNUSABLE, value_of

#: The most characters of a value in the table.
WIDTH = 32


class Command(DynamoCommand):
    help = (
        "Print the first items of a model, of the whole table in no order, or of a partition in "
        "the order of its sort key. Values whose names tell that they are secret are hidden."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        kind = model_type(PlainModel, "stored")
        parser.add_argument("model", metavar="APP.MODEL", type=kind, help="such as club.Member")
        parser.add_argument("--partition", metavar="KEY", help="only items with this partition key")
        parser.add_argument("--limit", type=positive, default=25, help="25 unless given")
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *args: object, **options: Any) -> None:
        model, limit, partition = options["model"], options["limit"], options["partition"]
        if partition is None:
            found = model.scan(limit=limit + 1)
        else:
            (_name, stored_name, attribute), *_sort = model._key_attributes()
            try:
                key = value_of(attribute, model.key_of_text(attribute, partition))
            except UNUSABLE as error:
                raise CommandError(
                    f"{partition!r} cannot be the {stored_name} of an item."
                ) from error
            found = model.query(key, limit=limit + 1)
        page = list(Results(model, found, lambda _item, error: error))
        self._print(model, page[:limit], as_json=options["json"])
        if len(page) > limit:
            self.stderr.write("There are more: give another --limit.", lambda line: line)

    def _print(
        self, model: type[PlainModel], items: Iterable[PlainModel | DamagedItem], *, as_json: bool
    ) -> None:
        names = [*model._meta.by_name]
        rows = [names]
        for item in items:
            if isinstance(item, DamagedItem):
                self.stderr.write(printable(str(item)))
                continue
            values = {name: _shown(item, name) for name in names}
            if as_json:
                self.stdout.write(json.dumps(values, cls=ShownEncoder, ensure_ascii=False))
            else:
                rows.append([*map(_cell, values.values())])
        if not as_json:
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for row in rows:
                cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                self.stdout.write("  ".join(cells).rstrip())


def _shown(item: PlainModel, name: str) -> object:
    value = item.attribute_values.get(name)
    hidden = name not in (item._hash_keyname, item._range_keyname) and is_secret(
        name, item.get_attributes()[name]
    )
    return "***" if hidden and value is not None else value


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        value = json.dumps(value, cls=ShownEncoder, ensure_ascii=False).strip('"')
    text = printable(value)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
