"""Writes of a model: an item and its guard items in one transaction, under the version read."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Never, Self

from pynamodb.expressions.condition import Condition

from dynamo._internal.client.sending import send
from dynamo._internal.items import Item, digest_of, is_same_value, ordered, text_of
from dynamo._internal.model.objects import VERSION, continues, new_version, next_version
from dynamo._internal.model.reading import Readable
from dynamo._internal.updates import Update, conditional
from dynamo.exceptions import AlreadyDone, ConditionFailed
from dynamo.transactions import Refusal, Transaction, Write, joined
from dynamo.unique import DIGEST, OWNER, REQUEST_DIGEST, REQUEST_ID, REQUESTS, GuardWrite, UniqueKey

#: The default key of an item is the UUIDv5 of its request id in this namespace.
REQUEST_IDS = uuid.UUID("5b0f6c9e-6d0b-4b43-9a35-0f4c1f1c9c57")

#: What Django passes to `save`, and means nothing here.
_DJANGOS_OPTIONS = {"force_insert", "force_update", "using"}


class Writable(Readable):
    """The writes of `Model`."""

    #: The version that this object was inserted with.
    _drawn: int | None = None

    @classmethod
    def create(
        cls, *, request_id: object = None, write: Transaction | None = None, **values: Any
    ) -> Self:
        """Make and store an item with `values`, by attribute name.

        `request_id` makes the call repeatable, at any time: a later call with the same id and the
        same values returns the item that the first one made, as it is stored by then. Take an id
        that the caller keeps, such as one in a form. After the item is deleted, the same id makes
        it again. For a model with the default key, the key is derived from the request id; another
        model gets one more guard item for it.

        Costs 1 request, 1 write unit; with n unique values 2 + 2n. 2 units more for a request id
        of a model with a key of its own.

        Raises:
            Taken: other items have unique values of it.
            AlreadyExists: an item has its key.
            RequestIdReused: the request id made an item with other values.
            ValueError, TypeError: a required value is missing, or one is not usable. Nothing was
                sent.
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

        If a reply was lost and others have changed the item before the request was repeated, the
        object is the item as it is stored by then.

        `marks` are further attributes to store. If the key is in use, `explained` is called with
        the stored item. It returns the error, or None if that is the item that this call was to
        store. By default the error is AlreadyExists.
        """
        # Each item begins with a version of its own; a repeated insertion keeps its first one.
        if self.stored or self._drawn is None or self.version != self._drawn:
            self.stored = {}
            self.version = self._drawn = new_version()
        item = self.serialize()
        self._check_key(item)
        self._check_index_keys(item)
        sent: Item = item | (marks or {})
        put = {
            "TableName": self.table(),
            "Item": sent,
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": self.key_attribute_names()[0]},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        # In a caller's transaction, values can be set until the commit.
        become = self.deserialize if write is None else partial(self._become, before=sent)

        def refused(refusal: Refusal) -> Exception | None:
            stored = refusal.stored or {}
            if continues(self._version_of(stored), int(sent[VERSION]["N"])):
                return None
            return explained(stored) if explained else self.AlreadyExists(self._noun())

        with joined(write) as write:
            write.add(Write(self, {"Put": put}, refused), *self._guard_writes({}, sent))
            write.on_commit(self, lambda stored: become(stored or sent))
        return self

    def insert_for(
        self, request_id: str, asked: Mapping[str, Any], write: Transaction | None = None
    ) -> Self:
        """Store this new object as `create` does for a request id and the arguments `asked`."""
        if not request_id.strip():
            raise ValueError("The request id must not be empty.")
        digest = {"S": digest_of(ordered(self._wire_of(asked)))}
        marks: Item = {REQUEST_DIGEST: digest}
        if self._has_default_key() and "pk" not in asked:
            self.pk = str(uuid.uuid5(REQUEST_IDS, request_id))
        else:
            # The key does not follow from the request id, so that has a guard item.
            self.check_request_ids()
            marks[REQUEST_ID] = {"S": request_id}

        def explained(stored: Item) -> Exception | None:
            # With the default key, neither item has a request id.
            if stored.get(REQUEST_ID) != marks.get(REQUEST_ID):
                return self.AlreadyExists(self._noun())
            is_same = stored.get(REQUEST_DIGEST) == digest and self._has_same_secrets(stored)
            return None if is_same else self.RequestIdReused(request_id, self._noun())

        try:
            return self.insert(write=write, marks=marks, explained=explained)
        except AlreadyDone:
            # The request made an item with another key, such as a random one.
            owner = text_of(self._read_guard(str(REQUESTS.key(marks))), OWNER)
            self.deserialize(self._get_owner(owner).stored)
            return self

    def _has_same_secrets(self, stored: Item) -> bool:
        """Whether `stored` has the values that its digest leaves out, for subclasses."""
        return True

    def save(  # type: ignore[override]  # Django's, not PynamoDB's
        self,
        *conditions: Never,
        update_fields: Iterable[str] | None = None,
        write: Transaction | None = None,
        **options: Any,
    ) -> None:
        """Store the attributes that were set since the object was read; a new object completely.

        Other attributes of the stored item are not written. `update_fields` names the attributes to
        store, as in Django, whose other options are ignored; what else was set stays, to be saved.
        Unlike in Django, an object whose item was deleted is not stored again: that is Stale.
        `insert` stores it as a new item. Costs and errors as `change`; of a new object as `create`.
        """
        if conditions or options.keys() - _DJANGOS_OPTIONS:
            raise TypeError("save takes no condition and no values: call change(…, condition=…).")
        if not self.stored:
            self.insert(write=write)
            return
        wanted = None if update_fields is None else set(update_fields)
        if unknown := self._unknown(wanted or ()):
            raise ValueError(f"update_fields: {unknown}")
        assigned = self._assigned(self.stored)
        names = assigned.keys() if wanted is None else assigned.keys() & wanted
        self.change(write=write, **{name: assigned[name] for name in names})

    def change(
        self,
        *,
        add: Mapping[str, Any] | None = None,
        condition: Condition | None = None,
        write: Transaction | None = None,
        **values: Any,
    ) -> None:
        """Give the stored item `values`, by attribute name (None removes one), and this object too.

        `add` counts up: `{"views": 1}`. Without other values it counts also if the item changed
        since it was read. `condition` must hold for the stored item as well.

        After the commit this object is what is stored; what was assigned to other attributes stays,
        for a later `save`. If it has all values already, nothing is sent. If another call gave the
        stored item these values meanwhile, it is a success.

        Costs 1 request, 1 write unit; with m unique values that change 2 + 4m. If `write` has
        other writes and `add` is given, 1 request and 1 read unit more.

        Raises:
            Taken: other items have the unique values.
            Stale: the item changed or was deleted since it was read.
            ConditionFailed: it did not, but `condition` does not hold.
            ValueError, TypeError: a value is not usable. Nothing was sent.
            Unavailable, Rejected, TableMissing: see `client.sending`. Unavailable also if a
                reply was lost and the item changed since.
        """
        self._check_writable("change")
        if both := values.keys() & (add or {}).keys():
            raise TypeError(f"change sets {', '.join(both)} or adds to it, not both.")
        changed = self._changed(values)
        if not (changed or add or condition is not None):
            self._become(self.stored, self.stored, values)
            return
        implied = {name: each for name, each in self._implied(values).items() if name not in values}
        self._update(
            self._wire_of(implied, removals=True) | changed,
            self._added(add or {}),
            condition,
            # By the changed values: those that they imply may be drawn at random.
            is_so=partial(self._is_so, changed),
            asked=values,
            write=write,
        )

    def _is_so(self, changed: Mapping[str, dict[str, Any] | None], stored: Item) -> bool:
        """Whether the item `stored` has the typed values `changed` already."""
        return all(is_same_value(stored.get(name), typed) for name, typed in changed.items())

    def _implied(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The attributes that a change to `values` also changes, for subclasses."""
        return {}

    def _changed(self, values: Mapping[str, Any]) -> dict[str, dict[str, Any] | None]:
        """Those of `values` that are not stored, by stored name; None for one that is removed."""
        return {
            name: typed
            for name, typed in self._wire_of(values, removals=True).items()
            if not is_same_value(self._stored_value(name), typed)
        }

    def moves_guard(self, changed: Mapping[str, dict[str, Any] | None]) -> bool:
        """Whether the stored item would have another guard item with the typed values `changed`."""
        after = {name: typed for name, typed in {**self.stored, **changed}.items() if typed}
        return any(self._moved(self.stored, after))

    def _added(self, add: Mapping[str, Any]) -> Item:
        added = self._wire_of(add, removals=True)
        taken = {name for unique in self._unique_keys for name in unique.stored_names}
        for name, typed in added.items():
            if "N" not in (typed or {}) or name in taken:
                raise TypeError(f"add counts up numbers that are not unique; {name} is not one.")
        return added

    def _update(
        self,
        changed: Mapping[str, dict[str, Any] | None],
        added: Item,
        condition: Condition | None,
        *,
        is_so: Callable[[Item], bool],
        asked: Iterable[str] = (),
        write: Transaction | None,
    ) -> None:
        """Write the typed values `changed` (None removes one) and count up by `added`.

        Values that were set on this object and not saved stay, except those of these attributes
        and of the attributes named in `asked`.

        If the item changed since it was read, the call is a success if `is_so(stored)` is true.
        """
        self._check_index_keys(changed)
        before = self.stored
        read = self._version_of(before)
        version = next_version(read)
        counts_only = bool(added) and not changed
        if counts_only:
            mine, added = self._is_same_item_condition(), {**added, VERSION: {"N": "1"}}
        else:
            mine, changed = self.unchanged(), {**changed, VERSION: {"N": str(version)}}
        left = {name: typed for name, typed in {**before, **changed}.items() if typed is not None}
        # If a number is not stored and has a default, it is counted up from the default.
        counted = {
            name: (start, step)
            for name, step in added.items()
            if name not in before
            and (start := {"N": str(version)} if name == VERSION else self._stored_value(name))
        }
        adding = {name: step for name, step in added.items() if name not in counted}
        update = Update(changed, adding, counted)
        request = update.request(self._address(), mine if condition is None else mine & condition)

        def otherwise(refusal: Refusal) -> Exception | None:
            stored = refusal.stored
            if stored is None or not self.is_same_item(stored):
                return self._stale(is_deleted=True)
            is_done = is_so(stored)
            if is_done and not (added or condition is not None):
                return None
            now = self._version_of(stored)
            # This write may have been done, and its reply lost: the stored version is a later one,
            # or it is the one that this write gives, with its values.
            if refusal.repeated and continues(now, version) and (is_done or now != version):
                return refusal.unknown()
            if condition is not None and (counts_only or now == read):
                return ConditionFailed("UpdateItem", refusal.repeated, stored)
            return self._stale()

        written = {*asked, *map(self._dynamo_to_python_attr, (*changed, *added))}

        def committed(stored: Item | None) -> None:
            if stored is None and added:
                stored = send("GetItem", self._address()).get("Item")
                if stored is None:
                    # It was deleted since. The commit is a success nevertheless.
                    return
            self._become(left if stored is None else stored, before, written)

        with joined(write) as write:
            whole = Write(self, {"Update": request}, otherwise, changes=update)
            write.add(whole, *self._guard_writes(before, left))
            write.on_commit(self, committed)

    def delete(  # type: ignore[override]  # Django's, not PynamoDB's
        self, *conditions: Never, write: Transaction | None = None, **options: Never
    ) -> None:
        """Delete the stored item and free its unique values.

        If it was deleted already, it is a success. Costs 1 request, 1 write unit; with n unique
        values 2 + 2n.

        Raises:
            Stale: it changed since it was read.
        """
        if conditions or options:
            raise TypeError(
                "delete takes no condition: it deletes the item only if that is still as it was "
                "read. So check this object before."
            )
        self._check_writable("delete")
        request = conditional(self._address(), self.unchanged())

        def otherwise(refusal: Refusal) -> Exception | None:
            return None if refusal.stored is None else self._stale()

        with joined(write) as write:
            whole = Write(self, {"Delete": request}, otherwise)
            write.add(whole, *self._guard_writes(self.stored, {}))
            write.on_commit(self, lambda _stored: setattr(self, "_is_deleted", True))

    # Guard items ----------------------------------------------------------------------------------

    def _guard_writes(self, before: Item, after: Item) -> list[GuardWrite]:
        """Frees the guard items that `before` had, and claims those that `after` needs.

        Raises:
            ValueError: see `UniqueKey.key`.
        """
        table, owner = self._guard_table(), self._owner()
        frees, claims = [], []
        for unique, old, new in self._moved(before, after):
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
