"""New items: stored once with their guard items, and found again by their request id."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar, cast

from dynamo.client.plain import per_class
from dynamo.client.writes import Refusal, Write
from dynamo.exceptions import AlreadyDone, Taken
from dynamo.model.objects import VERSION, WRITE_ID, is_later_version, new_version
from dynamo.model.reading import Readable
from dynamo.model.references import Reference
from dynamo.model.unique import (
    DIGEST,
    OWNER,
    REQUEST_DIGEST,
    REQUEST_ID,
    REQUESTS,
    GuardWrite,
    UniqueKey,
)
from dynamo.transactions import Transaction, errors_of, joined
from dynamo.wire.types import Item, Typed
from dynamo.wire.values import digest_of, is_same_value, text_of, typed_number

#: The default key of an item is the UUIDv5 of its request id in this namespace.
REQUEST_IDS = uuid.UUID("5b0f6c9e-6d0b-4b43-9a35-0f4c1f1c9c57")

Mark = TypeVar("Mark")


@dataclass(eq=False, kw_only=True)
class MarkedWrite(Write):
    """A put or an update of an item, which stores a mark that no other call has drawn.

    If there is no answer, the object keeps the mark, and the same call uses it again.
    """

    asked: object
    mark: object
    proves: Callable[[Item], bool]
    can_repeat: bool = True

    @property
    def is_repeatable(self) -> bool:
        return self.can_repeat

    def is_proven(self, stored: Item | None) -> bool:
        return stored is not None and self.proves(stored)

    def note_unanswered(self) -> None:
        cast(Creatable, self.about)._unanswered = self.asked, self.mark


def _without_marks(item: Item) -> Item:
    """The stored `item` without the marks that each write replaces."""
    return {name: typed for name, typed in item.items() if name not in {VERSION, WRITE_ID}}


class Creatable(Readable):
    """The creation of items, and what every write does with guard items."""

    @classmethod
    def create(
        cls, *, request_id: object = None, write: Transaction | None = None, **values: Any
    ) -> Self:
        """Make and store an item with `values`, by attribute name.

        `request_id` makes the call repeatable, at any time: a later call with the same id and the
        same values returns the item that the first one made, as it is stored now. Use an id that
        the caller keeps, such as one in a form. After the item was deleted, the same id makes it
        again. For a model with the default key, the key is derived from the request id; another
        model gets one more guard item for it.

        Costs 1 request, 1 write unit; with n unique values 2 + 2n. 2 units more for a request id of
        a model that declares its key.

        Raises:
            Taken: other items have unique values of it.
            AlreadyExists: an item has its key.
            RequestIdReused: the request id made an item with other values.
            ValueError, TypeError: a required value is missing, or a value is not usable. Nothing
                was sent.
            Unavailable, Rejected, TableMissing: see `client.sending`.
        """
        item = cls(**values)
        if request_id is None:
            return item.insert(write=write)
        return item.insert_for(str(request_id), values, write)

    def insert(
        self,
        *,
        write: Transaction | None = None,
        marks: Item | None = None,
        explained: Callable[[Item], Exception | None] | None = None,
    ) -> Self:
        """Store this new object; see `create`.

        If a reply was lost and others changed the item before the request was repeated, the object
        gets the values that are stored now.

        `marks` are further attributes to store. If the key is in use, `explained` is called with
        the stored item. It returns the error, or None if that is the item that this call was to
        store. By default the error is AlreadyExists.
        """
        item = self.serialize()
        item.pop(VERSION, None)
        return self._insert(item, write, marks, explained)

    @classmethod
    def restore(cls, item: Item) -> bool:
        if not cls._is_key_of(item):
            return False  # a guard item: its item brings it back
        new = cls.from_raw_data(item)
        values = new.serialize(null_check=False)
        # The whole item is stored, with attributes that the model does not declare, such as the
        # marks of its request id.
        wire = {name: values.get(name, typed) for name, typed in _without_marks(item).items()}
        is_stored = False

        def explained(stored: Item) -> Exception | None:
            nonlocal is_stored
            is_stored = is_same_value({"M": _without_marks(stored)}, {"M": wire})
            return None if is_stored else cls.AlreadyExists(cls._noun())

        # References are not checked: their items may be loaded later, or were deleted before the
        # dump.
        new._insert(wire, explained=explained, parts=new._guard_writes)
        return not is_stored

    def _insert(
        self,
        item: Item,
        write: Transaction | None = None,
        marks: Item | None = None,
        explained: Callable[[Item], Exception | None] | None = None,
        parts: Callable[[Item, Item], Sequence[Write]] | None = None,
    ) -> Self:
        """Store this object as `item`, without a version; see `insert`.

        `parts` makes the other writes of the transaction; by default, this is `_part_writes`.
        """
        # A new item gets a random version.
        drawn = self._mark_for(item, new_version)
        self._check_key(item)
        self._check_index_keys(item)
        sent: Item = {**item, VERSION: typed_number(drawn), **(marks or {})}
        # In a caller's transaction, values can be set until the commit.
        become = self.deserialize
        if write is not None:
            become = partial(self._become, before=sent, written={VERSION})

        def is_mine(stored: Item) -> bool:
            return is_later_version(self._version_of(stored), drawn)

        def refused(refusal: Refusal) -> Exception | None:
            stored = refusal.stored or {}
            if is_mine(stored):
                return None
            if explained:
                return explained(stored)
            taken = (error for error in errors_of(refusal.parts) if isinstance(error, Taken))
            return self.AlreadyExists(self._noun(), next(taken, None))

        put_write = MarkedWrite(
            self,
            "Put",
            self._put_if_absent(sent),
            refused,
            is_drawn=not self._is_kept(drawn),
            asked=item,
            mark=drawn,
            proves=is_mine,
        )
        with joined(write) as write:
            write.add(put_write, *(parts or self._part_writes)({}, sent))
            write.on_commit(self, lambda stored: become(stored or sent))
        return self

    def _mark_for(self, asked: object, draw: Callable[[], Mark]) -> Mark:
        """The mark of a call.

        If the last call was the same and got no answer, its mark is used again.
        """
        if self._unanswered is not None and self._unanswered[0] == asked:
            return cast(Mark, self._unanswered[1])
        return draw()

    def _is_kept(self, mark: object) -> bool:
        return self._unanswered is not None and self._unanswered[1] == mark

    @classmethod
    def key_for(cls, request_id: str) -> str:
        """The key of the item that `request_id` makes, for a model with the default key."""
        return str(uuid.uuid5(REQUEST_IDS, request_id))

    def insert_for(
        self, request_id: str, asked: Mapping[str, object], write: Transaction | None = None
    ) -> Self:
        """Store this new object as `create` does for a request id and the arguments `asked`."""
        if not request_id.strip():
            raise ValueError("The request id must not be empty.")
        if self._discriminator:
            # Items of two classes are never the same.
            own = self.attribute_values.get(self._discriminator)
            asked = {**asked, self._discriminator: own}
        digest: Typed = {"S": digest_of(self._wire_of(asked))}
        marks: Item = {REQUEST_DIGEST: digest}
        is_same = partial(self._has_digest, digest)
        if self._has_default_key() and "pk" not in asked:
            return self.insert_once(request_id, is_same, marks=marks, write=write)
        # The key does not follow from the request id, so the request id has a guard item.
        self.check_request_ids()
        marks[REQUEST_ID] = {"S": request_id}

        def explained(stored: Item) -> Exception | None:
            if stored.get(REQUEST_ID) != marks[REQUEST_ID]:
                return self.AlreadyExists(self._noun())
            return None if is_same(stored) else self.RequestIdReused(request_id, self._noun())

        try:
            return self.insert(write=write, marks=marks, explained=explained)
        except AlreadyDone:
            # The request made an item with another key, for example a random one.
            owner = text_of(self._read_guard(str(REQUESTS.key(marks))), OWNER)
            self.deserialize(self._get_owner(owner).stored)
            return self

    def insert_once(
        self,
        request_id: str,
        is_same: Callable[[Item], bool],
        *,
        marks: Item | None = None,
        write: Transaction | None = None,
    ) -> Self:
        """Store this new object under the default key that follows from `request_id`.

        If an item has the key, `is_same` gets the stored item, and returns whether this request
        created it. If so, the object gets its values. Otherwise, the error is RequestIdReused. For
        `marks` see `insert`.
        """
        self.pk = self.key_for(request_id)

        def explained(stored: Item) -> Exception | None:
            repeats = bool(stored) and is_same(stored)
            return None if repeats else self.RequestIdReused(request_id, self._noun())

        return self.insert(write=write, marks=marks, explained=explained)

    def _has_digest(self, digest: Typed, stored: Item) -> bool:
        """Whether `stored` was made by the request with this `digest`."""
        return stored.get(REQUEST_DIGEST) == digest

    # Guard items ----------------------------------------------------------------------------------

    def _part_writes(self, before: Item, after: Item) -> list[Write]:
        """The other writes of a change from `before` to `after`: guard items, checks of references.

        Raises:
            ValueError: see `UniqueKey.key`.
        """
        return [*self._guard_writes(before, after), *self.reference_checks(before, after)]

    def reference_checks(self, before: Item, after: Item) -> list[Write]:
        """Require that the items exist to which `after` refers and `before` does not.

        Raises:
            DoesNotExist: no item can have the key.
        """
        return [
            attribute.check(name, text_of(after, stored_name), self)
            for name, stored_name, attribute in self._references()
            if stored_name in after and after[stored_name] != before.get(stored_name)
        ]

    @classmethod
    @per_class
    def _references(cls) -> list[tuple[str, str, Reference]]:
        return [
            (name, stored_name, attribute)
            for name, stored_name, attribute in cls._named_attributes()
            if isinstance(attribute, Reference)
        ]

    def _guard_writes(self, before: Item, after: Item) -> list[GuardWrite]:
        """Free the guard items of `before`, and claim those of `after`.

        Raises:
            ValueError: see `UniqueKey.key`.
        """
        moved = [*self._moved(before, after)]
        if not moved:
            return []
        table = self._guard_table()
        owner = self.owner_of(after or before)
        frees, claims = [], []
        for unique, old, new in moved:
            if old is not None:
                frees.append(table.free(old, owner, self))
            if new is not None:
                taken = partial(self._taken_by, unique, after)
                attributes = unique.guard_attributes(new, after)
                claims.append(table.claim(new, owner, self, taken, attributes))
        return frees + claims

    def _taken_by(self, unique: UniqueKey, item: Item, refusal: Refusal) -> Exception | None:
        if unique is not REQUESTS:
            return self._taken(unique.names, unique.values(item))
        is_same = (refusal.stored or {}).get(DIGEST) == item[REQUEST_DIGEST]
        return None if is_same else self.RequestIdReused(text_of(item, REQUEST_ID), self._noun())
