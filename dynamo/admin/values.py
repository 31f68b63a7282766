"""What pages show of items: their names, and rows of lists."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.utils.functional import lazystr

from dynamo._internal.items import Item
from dynamo.admin.keys import id_of
from dynamo.exceptions import DamagedItem
from dynamo.models import Model


def name_of(item: Model) -> str:
    """What pages and the audit log call an item: its text if its class makes one, else its key."""
    # An item that is not stored lacks the values that `__str__` may need.
    # Nor does one from an index have all of them.
    if item.stored and type(item).__str__ is not object.__str__:
        with suppress(AttributeError, TypeError):
            return str(item)
    return f"{item._noun()} {id_of(item)}"


class DamagedRow:
    """Stands for an item of a list that cannot be read."""

    def __init__(self, item: Item, error: DamagedItem) -> None:
        self.stored, self.error = item, error

    def __str__(self) -> str:
        return str(self.error)


class Shown:
    """An item with the `pk` that contrib.admin's templates put into URLs."""

    def __init__(self, item: Model) -> None:
        # A lazy text is not quoted once more.
        self._item, self.pk = item, lazystr(id_of(item))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._item, name)

    def __str__(self) -> str:
        return name_of(self._item)


def is_sensitive(model: type[Model], name: Any) -> bool:
    """Whether the attribute is neither shown nor logged."""
    attribute = model.get_attributes().get(name) if isinstance(name, str) else None
    return bool(getattr(attribute, "sensitive", False))
