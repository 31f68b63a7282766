"""Counters, and the base of models whose items a series numbers.

The table `counters`:

    counterName (S)    a counter's name; `<table>#<series>` for the counter of a series
    currentValue (N)   the last number that was given out
    firstValue (N)     of a series, the first number, if that is not 1
    lastDate (S or N)  in a series with `ordered_by`: that attribute of the last item

The table of a `NumberedItem`:

    series (S)                number (N)   item
    <series>                  1, 2, 3 …    the numbered items, each with its `requestId` (S)
    requestId#<scope>#<id>    0            the guard item of a request id: `owner` (S) =
                                           `<series>#<number>`, `digest` (S) of the contents

Counters are written and read as on the wire, because PynamoDB's numbers are floats.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, NoReturn

from dynamo.client import bulk
from dynamo.client.plain import PlainModel, not_supported
from dynamo.client.sending import read_item, write_one
from dynamo.model.base import Model
from dynamo.model.unique import GuardTable, GuardWrite
from dynamo.wire.attributes import IntegerAttribute, TextAttribute
from dynamo.wire.types import Address, Item, Typed
from dynamo.wire.updates import Update
from dynamo.wire.values import canonical, digest_of, typed_number
from sequences.exceptions import RequestIdReused

#: The partition key of every request id's guard item begins with this.
REQUEST_PREFIX = "requestId#"


class Counter(PlainModel):
    """The key of a counter's item."""

    class Meta:
        table_name = "counters"

    name = TextAttribute(hash_key=True, attr_name="counterName")

    @classmethod
    def dump_filter(cls, first: Iterable[Item]) -> Callable[[Item], bool]:
        # The counters of series are dumped with the items of their model.
        return lambda item: not is_counter_of_series(item["counterName"]["S"])

    @classmethod
    def restore(cls, item: Item) -> bool:
        name = item["counterName"]["S"]
        return cls.advance(item) if "#" in name else cls._restore_as_it_is(item)

    @classmethod
    def advance(cls, item: Item) -> bool:
        """Make `item` the counter of its series, unless that is as high. Returns whether it did.

        Costs 1 request and 1 read unit; for the write 1 request and 1 write unit more.
        """
        values = {name: typed for name, typed in item.items() if name != "counterName"}
        address = cls.address(item["counterName"]["S"])
        stored = read_item(address) or {}
        last = int(values["currentValue"]["N"])
        condition = "attribute_not_exists(currentValue) OR currentValue < :last"
        if int(stored.get("currentValue", {"N": "-1"})["N"]) >= last:
            if "firstValue" in stored or "firstValue" not in values:
                return False
            # Earlier items of the series were already loaded.
            values = {"firstValue": values["firstValue"]}
            condition = "currentValue >= :last"
        request = Update(values).request(address, condition, values={":last": typed_number(last)})
        # If this is refused, the counter has reached this number since it was read.
        return bool(write_one("UpdateItem", request)) or cls.advance(item)

    @classmethod
    def address(cls, name: str) -> Address:
        """Table and key of a counter, as in a request."""
        return {"TableName": cls.table(), "Key": {"counterName": {"S": name}}}


_counter_prefixes: set[str] = set()


def is_counter_of_series(name: str) -> bool:
    """Whether a counter of this name belongs to a series of some numbered model."""
    return "#" in name and name.startswith(tuple(_counter_prefixes))


class Place(NamedTuple):
    """The place where a numbered item is stored."""

    series: str
    number: int


class NumberedModel(Model):
    """The part of a model that a series needs. Models derive from `sequences.NumberedItem`."""

    series = TextAttribute(hash_key=True, editable=False)
    number = IntegerAttribute(range_key=True, editable=False)
    request_id = TextAttribute(attr_name="requestId", null=True, editable=False)

    #: The stored name of an attribute (S or N) whose values must not decrease within a series.
    #: S is compared as text, so use a format that sorts, such as ISO dates.
    ordered_by: ClassVar[str | None] = None

    #: The base of a model's own error.
    RequestIdReused = RequestIdReused

    _parameters = Model._parameters - {"request_id"}
    _never_deleted = "A numbered item is never deleted, because that would leave a gap."

    _left_out = "they were issued since the beginning, or checkseries finds them beyond a counter"

    #: Whether a `request_scope` may contain `#`. If so, a request id must not, so that two scopes
    #: never share a guard key.
    scopes_have_hash: ClassVar[bool] = True

    #: The number of bytes to keep free in an item for later writes.
    reserved_bytes: ClassVar[int] = 0

    @classmethod
    def _complete(cls) -> None:
        super()._complete()
        if cls._unique_keys or cls.ttl_attribute:
            raise TypeError("numbered items can neither be unique nor expire.")
        if getattr(cls.Meta, "guard_table", None):
            raise TypeError("its guard items are in its table. Leave Meta.guard_table out.")
        own = {
            str(attribute.attr_name): attribute.attr_type
            for attribute in cls.get_attributes().values()
        }
        if {**own, "series": "S", "number": "N", "requestId": "S"} != own:
            raise TypeError("series, number and request_id come with NumberedItem.")
        cls._fixed |= {"requestId", cls.ordered_by}
        _counter_prefixes.add(cls.counter_prefix())

    @classmethod
    def check_order(cls, order: Typed) -> None:
        """Check that a value of `ordered_by`, as on the wire, can be ordered.

        Raises:
            ValueError: its type is not that of the attribute.
        """
        own = cls.get_attributes().values()
        kinds = {item.attr_type for item in own if item.attr_name == cls.ordered_by} or {"S", "N"}
        if not order.keys() & kinds & {"S", "N"}:
            raise ValueError(f"A series cannot be ordered by {order!r}.")

    @classmethod
    def request_scope(cls, series: str) -> str:
        """The name within which a request id is known. The default is the series itself.

        With a constant, ids are known in all series of the model: a form that is sent again after
        New Year returns the item of the year before. Stored guard items keep their scope, so choose
        before the first item is issued.
        """
        return series

    def contents(self) -> Any:
        """The contents that two calls with the same request id must have in common, as JSON.

        By default, these are all attributes except series, number, request id, and values that a
        default function made, such as a time stamp.
        """
        left_out = _KEPT_APART | {
            attribute.attr_name
            for name, attribute in self.get_attributes().items()
            if name not in self._given
            and (callable(attribute.default) or callable(attribute.default_for_new))
        }
        own = self.to_wire()
        return {name: canonical(typed) for name, typed in own.items() if name not in left_out}

    def digest(self) -> str:
        """The SHA-256 of `contents`, in hex."""
        return digest_of(self.contents())

    def to_wire(self) -> Item:
        """The attributes as on the wire; `issue` adds series, number and request id.

        Raises:
            ValueError: a required value is missing.
        """
        # `to_dynamodb_dict` would encode bytes for JSON and not notice a missing attribute.
        return self.serialize()

    # Dumps ----------------------------------------------------------------------------------------

    @classmethod
    def dumped_first(cls) -> list[tuple[type[PlainModel], Item]]:
        prefix = cls.counter_prefix()
        names = ("counterName", "currentValue", "firstValue", "lastDate")
        return [
            (Counter, item)
            for page in bulk.pages(Counter.table(), names)
            for item in page
            if item["counterName"]["S"].startswith(prefix)
        ]

    @classmethod
    def dump_filter(cls, first: Iterable[Item]) -> Callable[[Item], bool]:
        # The counter is read before the items. Up to its number, the dump has every item. Items
        # that are issued later are left out.
        ends = {item["counterName"]["S"]: int(item["currentValue"]["N"]) for item in first}

        def is_dumped(item: Item) -> bool:
            place = cls.place_of(item) if cls._is_guard(item) else cls._own_place(item)
            if place is None:
                return False
            return place.number <= ends.get(f"{cls.counter_prefix()}{place.series}", 0)

        return is_dumped

    @classmethod
    def restore(cls, item: Item) -> bool:
        if cls._is_guard(item):
            return cls._restore_as_it_is(item)
        series, number = cls._own_place(item)
        # The counter comes first. Otherwise, the number could be issued again.
        counter = cls.counter_of(series)._key() | {"currentValue": typed_number(number)}
        if cls.ordered_by in item:
            counter["lastDate"] = item[cls.ordered_by]
        Counter.advance(counter)
        return super().restore(item)

    def _guard_writes(self, before: Item, after: Item) -> list[GuardWrite]:
        return []  # `sequences.groups` writes them

    @staticmethod
    def _is_guard(item: Item) -> bool:
        return item["series"]["S"].startswith(REQUEST_PREFIX)

    @staticmethod
    def _own_place(item: Item) -> Place:
        return Place(item["series"]["S"], int(item["number"]["N"]))

    # Calls that would leave a gap ---------------------------------------------------------------

    def insert(self, **_options: object) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"Numbers are issued: call sequences.issue({name}(…), series=…).")

    create_many = not_supported("Numbers are issued: call sequences.issue(…) for each item.")

    def delete(self, *_conditions: object, **_options: object) -> NoReturn:
        raise TypeError(self._never_deleted)

    # Keys -------------------------------------------------------------------------------------

    @classmethod
    def _guard_table(cls) -> GuardTable:
        # The table of the guard items of request ids.
        return GuardTable(cls.Meta.table_name, "series", is_separate=False)

    @classmethod
    def counter_of(cls, series: str) -> Counter:
        """The key of the counter of a series."""
        return Counter(f"{cls.counter_prefix()}{series}")

    @classmethod
    def counter_prefix(cls) -> str:
        """The beginning of the names of this model's counters."""
        return f"{cls.Meta.table_name}#"

    @classmethod
    def guard_key(cls, series: str, request_id: str) -> str:
        """The partition key of the guard item of a request id; its number is 0."""
        return f"{REQUEST_PREFIX}{cls.request_scope(series)}#{request_id}"

    @classmethod
    def scope_of(cls, guard_key: str) -> str:
        """The scope that is part of a guard item's key."""
        parts = guard_key.removeprefix(REQUEST_PREFIX)
        return parts.rpartition("#")[0] if cls.scopes_have_hash else parts.partition("#")[0]

    @staticmethod
    def place_of(guard: Item) -> Place | None:
        """The item that a guard item names; None if it names none."""
        series, _, number = guard.get("owner", {}).get("S", "").rpartition("#")
        is_whole = number.isascii() and number.isdigit()
        return Place(series, int(number)) if series and is_whole else None


_KEPT_APART = {"series", "number", "requestId"}
