"""Changes and deletions of an item and its guard items, in one transaction with the version."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Never, cast

from django.db import DEFAULT_DB_ALIAS
from pynamodb.expressions.condition import Condition

from dynamo.client.plain import per_class
from dynamo.client.sending import read_item
from dynamo.client.writes import Refusal, Write
from dynamo.exceptions import ConditionFailed, Rejected, Unavailable
from dynamo.model.creating import Creatable, MarkedWrite
from dynamo.model.objects import VERSION, WRITE_ID, is_later_version, new_write_id, next_version
from dynamo.transactions import Transaction, joined
from dynamo.wire.attributes import FormAttribute, nearest
from dynamo.wire.types import Item, Request, Typed
from dynamo.wire.updates import Update, conditional, with_defaults
from dynamo.wire.values import is_same_value, text_of, typed_number


def refuse_alias(call: str, alias: str | None) -> None:
    """Raise TypeError if a call names another database than the default of Django."""
    if alias not in (None, DEFAULT_DB_ALIAS):
        raise TypeError(f"{call}: leave out using={alias!r}, because items are in DynamoDB.")


class _Check(Write):
    """Requires that an item still exists.

    If it replaces a change to the same values, it is sent alone as an update that changes nothing:
    it requires the version, and stores it again.
    """

    @property
    def plain(self) -> tuple[str, Request] | None:
        if not self.is_idle:
            return None
        item = cast(Writable, self.about)
        same = Update({VERSION: item.stored.get(VERSION)})
        return "UpdateItem", same.request(item._address(), cast(Condition, self.condition))


class Writable(Creatable):
    """The changes and deletions of `Model`."""

    def save(  # type: ignore[override]  # Django's, not PynamoDB's
        self,
        *conditions: Never,
        force_insert: object = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
        write: Transaction | None = None,
        **values: Never,
    ) -> None:
        """Store the attributes that were set since the object was read; a new object completely.

        Other attributes of the stored item are not written. `update_fields` names the attributes to
        store, as in Django; other values that were set can be saved later. `force_insert` stores
        the object as `insert` does, `force_update` refuses a new object. If nothing was set,
        nothing is sent. With one of these two options, or in a caller's transaction, the write then
        only requires that the item is still the one that was read.

        Unlike in Django, an object whose item was deleted is not stored again: the error is Stale.
        `insert` stores it as a new item. Costs as much as `change`, or as `create` for a new
        object.

        Raises:
            what `change` raises, or `create` for a new object.
            ValueError: `update_fields` names an unknown attribute, or options contradict each
                other.
            TypeError: with a condition, values, or another database than the default; or nothing
                was set but what looks like a misspelled attribute.
        """
        if conditions or values:
            raise TypeError("save takes no condition and no values: call change(…, condition=…).")
        refuse_alias("save", using)
        updates = force_update or update_fields is not None
        if force_insert and updates:
            raise ValueError("save: force_insert creates an item, the other options change one.")
        if not force_insert:
            self._settle()
        if force_insert or not (self.stored or updates):
            self.insert(write=write)
            return
        self._check_writable("save with force_update or update_fields" if updates else "save")
        wanted = None if update_fields is None else set(update_fields)
        if unknown := self._unknown(wanted or ()):
            raise ValueError(f"update_fields: {unknown}")
        assigned = self._assigned(self.stored)
        names = assigned.keys() if wanted is None else assigned.keys() & wanted
        if not assigned:
            self._check_spelling()
        if names or wanted or force_update or write is not None:
            self.change(write=write, **{name: assigned[name] for name in names})

    def _settle(self) -> None:
        """Take the values that the last `save` of this new object stored, if it had no answer.

        The values that were set since then are kept for the next write. Without such values nothing
        is read, because the same `save` recognizes its write. Costs 1 request and 1 read unit.
        """
        if self.stored or self._unanswered is None:
            return
        asked, version = cast(tuple[Item, int], self._unanswered)
        if self.serialize() == asked:
            return
        stored = read_item(self._address())
        if stored and is_later_version(self._version_of(stored), version):
            self._become(stored, before=asked, written={VERSION})

    def _check_spelling(self) -> None:
        """Raise TypeError if a name that was set looks like a misspelled attribute."""
        others = (name for name in vars(self) if not name.startswith("_"))
        for name in others:
            near = nearest(name, self.get_attributes())
            if near and not hasattr(type(self), name) and name != "attribute_values":
                raise TypeError(
                    f"save: {type(self).__name__} has no attribute {name}, so nothing would be "
                    f"written. Set {near}."
                )

    def change(
        self,
        *,
        add: Mapping[str, object] | None = None,
        condition: Condition | None = None,
        write: Transaction | None = None,
        **values: object,
    ) -> None:
        """Give the stored item `values`, by attribute name (None removes one), and this object too.

        `add` counts up: `{"views": 1}`. Without other values, it counts even if the item changed
        since it was read. `condition` must hold for the stored item as well, and its defaults.

        After the commit, this object has the stored values. Values that were set on other
        attributes are kept for a later `save`. If the item has all values already, they are not
        written, but the item must still be the one that was read.

        Costs 1 request, 1 write unit; with m unique values that change 2 + 4m. If `write` has other
        writes and `add` is given, 1 request and 1 read unit more; if this read gets no answer, this
        object does not change. After a lost reply to a call that only counts up, 1 request and 1
        read unit more.

        Raises:
            Taken: other items have the unique values.
            Stale: the item changed or was deleted since it was read, even if it has the values now
                (`dynamo.ensure` accepts this).
            ConditionFailed: the item did not change, but `condition` does not hold.
            ValueError, TypeError: a value is not usable. Nothing was sent.
            Unavailable, Rejected, TableMissing: see `client.sending`. Unavailable also if a
                reply was lost and the item changed since.
        """
        self._check_writable("change")
        if condition is not None:
            condition = with_defaults(self._named_attributes(), condition)
        if both := values.keys() & (add or {}).keys():
            raise TypeError(f"change sets {', '.join(both)} or adds to it, not both.")
        changed = self._changed(values)
        if not (changed or add):
            self._require(write, condition=condition, names=values, is_idle=True)
            return
        implied = {
            name: value for name, value in self._implied(values).items() if name not in values
        }
        self._update(
            self._wire_of(implied, removals=True) | changed,
            self._added(add or {}),
            condition,
            # Implied values are left out, because they may be random and differ in a repeated call.
            asked=changed,
            names=values,
            write=write,
        )

    def require(self, *, write: Transaction, unchanged: bool = False) -> None:
        """Require in the caller's transaction that this item still exists. Nothing is written.

            with Transaction() as write:
                patient.require(write=write)
                Appointment.create(patient=patient.pk, write=write)

        Another item under the same key is not this one. With `unchanged`, the item must also be as
        it was read. Costs 2 write units, nothing if `write` also writes this item.

        Raises (from the commit):
            Stale: the item was deleted, or with `unchanged` changed.
        """
        if not self.stored and any(entry.about is self for entry in write):
            # This transaction creates the item.
            return
        self._check_writable("require")
        self._require(write, unchanged=unchanged)

    def _is_this(self, stored: Item | None) -> bool:
        return stored is not None and self.is_same_item(stored)

    def _mine(self, *, unchanged: bool) -> tuple[Condition, Callable[[Item | None], bool]]:
        """The condition that the stored item is this one, and a test of it for an item."""
        if unchanged:
            return self.unchanged(), self.is_as_read
        return self._is_same_item_condition(), self._is_this

    def _require(
        self,
        write: Transaction | None,
        *,
        unchanged: bool = True,
        condition: Condition | None = None,
        names: Iterable[str] = (),
        is_idle: bool = False,
    ) -> None:
        """Write nothing, but require this item, if asked also `unchanged`, and `condition`."""
        mine, holds = self._mine(unchanged=unchanged)
        whole = mine if condition is None else mine & condition
        before = self.stored

        def otherwise(refusal: Refusal) -> Exception:
            if condition is not None and holds(refusal.stored):
                return ConditionFailed("UpdateItem", refusal.repeated, refusal.stored, type(self))
            return self._stale(is_deleted=not self._is_this(refusal.stored))

        with joined(write) as write:
            check = _Check(
                self,
                "ConditionCheck",
                conditional(self._address(), whole),
                otherwise,
                condition=whole,
                holds=holds if condition is None else None,
                is_idle=is_idle,
            )
            write.add(check)
            write.on_commit(self, lambda stored: self._become(stored or before, before, {*names}))

    def _implied(self, values: Mapping[str, object]) -> dict[str, object]:
        """The attributes that a change to `values` also changes."""
        return {name: attribute.now() for name, attribute in self._times_of_writes()}

    @classmethod
    @per_class
    def _times_of_writes(cls) -> list[tuple[str, FormAttribute]]:
        """The attributes with `auto_now`."""
        return [
            (name, attribute)
            for name, _stored_name, attribute in cls._named_attributes()
            if isinstance(attribute, FormAttribute) and attribute.auto_now
        ]

    def _changed(self, values: Mapping[str, object]) -> dict[str, Typed | None]:
        """The values that differ from the stored ones, by stored name; None for a removed one."""
        return {
            name: typed
            for name, typed in self._wire_of(values, removals=True).items()
            if not is_same_value(self.stored.get(name), typed)
        }

    def moves_guard(self, changed: Mapping[str, Typed | None]) -> bool:
        """Whether the typed values `changed` would give the stored item another guard item."""
        after = {name: typed for name, typed in {**self.stored, **changed}.items() if typed}
        return any(self._moved(self.stored, after))

    def _added(self, add: Mapping[str, object]) -> Item:
        taken = {name for unique in self._unique_keys for name in unique.stored_names}
        added: Item = {}
        for name, typed in self._wire_of(add, removals=True).items():
            if typed is None or "N" not in typed or name in taken:
                raise TypeError(f"add counts up numbers that are not unique; {name} is not one.")
            added[name] = typed
        return added

    def _counted_from_defaults(self, added: Item, version: int) -> dict[str, tuple[Typed, Typed]]:
        """The start and the step of those numbers in `added` that are not stored.

        A number begins at its default; without a default at 0, as in DynamoDB.
        """
        counted = {}
        for name, step in added.items():
            start = typed_number(version) if name == VERSION else self._stored_value(name)
            if start is not None and name not in self.stored:
                counted[name] = start, step
        return counted

    def _update(
        self,
        changed: Mapping[str, Typed | None],
        added: Item,
        condition: Condition | None,
        *,
        asked: object,
        names: Iterable[str] = (),
        write: Transaction | None,
    ) -> None:
        """Write the typed values `changed` (None removes one) and count up by `added`.

        A repeated call has the same `asked`. Values that were set on this object and not saved are
        kept, except those of these attributes and of the attributes `names`.
        """
        self._check_index_keys(changed)
        before = self.stored
        read = self._version_of(before)
        version = next_version(read)
        counts_only = bool(added) and not asked
        mine, holds = self._mine(unchanged=not counts_only)
        if counts_only:
            added = {**added, VERSION: typed_number(1)}
        else:
            changed = {**changed, VERSION: typed_number(version)}
        # A repeated call must count again, so each count has its own mark.
        asked = read, asked, added
        mark = new_write_id() if counts_only else self._mark_for(asked, new_write_id)
        changed = {**changed, WRITE_ID: {"S": mark}}
        left = {name: typed for name, typed in {**before, **changed}.items() if typed is not None}
        counted = self._counted_from_defaults(added, version)
        adding = {name: step for name, step in added.items() if name not in counted}
        update = Update(changed, adding, counted)
        whole = mine if condition is None else mine & condition

        def is_mine(stored: Item) -> bool:
            return text_of(stored, WRITE_ID) == mark

        def otherwise(refusal: Refusal) -> Exception | None:
            stored = refusal.stored
            if stored is not None and is_mine(stored):
                return None
            is_gone = stored is None or not self.is_same_item(stored)
            now = None if stored is None else self._version_of(stored)
            # This write may have been done before others changed or deleted the item. It was not if
            # the item was written at most once since it was read.
            if refusal.repeated and (is_gone or now not in {read, version}):
                return refusal.unknown()
            if condition is not None and not is_gone and (counts_only or now == read):
                return ConditionFailed("UpdateItem", refusal.repeated, stored, type(self))
            return self._stale(is_deleted=is_gone)

        written = {*names, *map(self._dynamo_to_python_attr, (*changed, *added))}

        def committed(stored: Item | None) -> None:
            if stored is None and added:
                # The commit has succeeded, even if the item was deleted since or cannot be read.
                with suppress(Unavailable, Rejected):
                    stored = read_item(self._address())
                if stored is None:
                    return
            self._become(left if stored is None else stored, before, written)

        with joined(write) as write:
            item_write = MarkedWrite(
                self,
                "Update",
                update.request(self._address(), whole),
                otherwise,
                changes=update,
                condition=whole,
                holds=holds if condition is None else None,
                is_drawn=not self._is_kept(mark),
                asked=asked,
                mark=mark,
                proves=is_mine,
                # Other writes can be repeated, because their own success makes the condition false.
                can_repeat=not counts_only,
            )
            write.add(item_write, *self._part_writes(before, left))
            write.on_commit(self, committed)

    def delete(  # type: ignore[override]  # Django's, not PynamoDB's
        self,
        *conditions: Never,
        missing_ok: bool | None = None,
        write: Transaction | None = None,
        **options: Never,
    ) -> None:
        """Delete the stored item and free its unique values.

        `missing_ok` says whether the call succeeds if the item was deleted already. By default it
        does, except in a caller's transaction. A worker that takes a job by deleting it passes
        False: then one of several workers succeeds.

        Costs 1 request, 1 write unit; 2 with `missing_ok=False`; with n unique values 2 + 2n.

        Raises:
            Stale: it changed since it was read; or it was deleted, and `missing_ok` is not true.
            Unavailable: a reply was lost, and the item is gone.
        """
        if conditions or options:
            raise TypeError(
                "delete takes no condition and no option of Django. It deletes the item only if it "
                "is still as it was read: check the values of this object before the call."
            )
        if missing_ok is None:
            missing_ok = write is None
        self._check_writable("delete" if missing_ok else "delete(missing_ok=False)")
        request = conditional(self._address(), self.unchanged())

        def otherwise(refusal: Refusal) -> Exception | None:
            if refusal.stored is not None:
                # After this call deleted the item, another one may have been stored under its key.
                may_be_done = refusal.repeated and not self.is_same_item(refusal.stored)
                return refusal.unknown() if may_be_done else self._stale()
            if missing_ok:
                return None
            return refusal.unknown() if refusal.resent else self._stale(is_deleted=True)

        with joined(write) as write:
            # A deletion stores nothing by which it could recognize itself, so it uses a token.
            whole = Write(self, "Delete", request, otherwise, needs_token=not missing_ok)
            write.add(whole, *self._guard_writes(self.stored, {}))
            write.on_commit(self, lambda _stored: setattr(self, "_is_deleted", True))
