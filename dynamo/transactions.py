"""Transactions: several writes, of which all or none are done. Each has the error of its refusal.

    with Transaction() as write:
        ann.change(email="ann@example.org", write=write)
        Entry.create(text="Ann has another address.", write=write)

An operation that takes `write: Transaction | None = None` adds its writes to the caller's
transaction, which the caller commits. Without one it commits its own:

    def move(member: Member, email: str, *, write: Transaction | None = None) -> None:
        with joined(write) as write:
            member.change(email=email, write=write)
            Entry.create(text=f"{member} has another address.", write=write)

`put`, `update`, `delete` and `check` are for items that are not those of a `Model`, such as locks.
Each takes its condition, and the error for a false condition:

        write.check(LockItem(name), held, otherwise=LeaseLost(name, fence, reason))

A transaction of several writes is one TransactWriteItems. A transaction of a single write is sent
as a plain PutItem, UpdateItem or DeleteItem, which costs half as much. DynamoDB keeps no request
token for these. `Refusal.error` says how such a write recognizes itself after a lost reply.

Source: "Amazon DynamoDB Transactions: How it works",
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from types import NoneType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from django.utils.functional import LazyObject
from pynamodb.expressions.condition import Condition

from dynamo.client.plain import PlainModel, not_supported
from dynamo.client.sending import read_item, send, stored_after
from dynamo.client.writes import Changes, Otherwise, Refusal, Write
from dynamo.exceptions import (
    AlreadyDone,
    ConditionFailed,
    DynamoError,
    Refused,
    Rejected,
    Taken,
    TransactionCancelled,
    Unavailable,
)
from dynamo.runtime.altering import AltersData
from dynamo.runtime.threads import in_thread
from dynamo.wire.types import Address, Item
from dynamo.wire.updates import conditional
from dynamo.wire.values import ITEM_MAX_BYTES

#: The limits of a transaction.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_WRITES = 100
MAX_BYTES = 4 * 1024 * 1024

#: The most items to read with one `read_together`. DynamoDB takes 100 since 2022; before that, it
#: took 25, as moto and older engines still do. The read units are the same.
READ_TOGETHER = 25


#: Called after a commit, with the stored item if it is known.
OnCommit = Callable[[Item | None], object]

#: The transaction in whose `with` block the caller is.
_innermost: ContextVar[Transaction | None] = ContextVar("transaction", default=None)

#: The error of a call without `write=` in the block of a transaction.
_ON_ITS_OWN = (
    "This would be committed on its own, although it is inside of `with Transaction() as write`, "
    "which may fail."
)

P = ParamSpec("P")
_About = TypeVar("_About")


def _composed(
    method: Callable[Concatenate[Transaction, PlainModel, P], None],
) -> Callable[Concatenate[Transaction, PlainModel, P], None]:
    """A method for writes that the caller composes.

    For a `Model`, an error names the right call.
    """
    verb = method.__name__

    @wraps(method)
    def call(self: Transaction, item: PlainModel, /, *args: P.args, **options: P.kwargs) -> None:
        # A check writes nothing. It needs `otherwise`, which says what its refusal means.
        if verb != "check" or "otherwise" not in options:
            item.refuse_raw_write(verb)
        method(self, item, *args, **options)

    return call


class Transaction(AltersData):
    """Collects writes and commits them at the end of its `with` block (or by `commit`).

    After an exception in the block nothing is written. Then, and after a commit, it takes no
    writes.

    At most 100 writes of 4 MB, one per item. Costs 1 request and 2 write units per KB of each item,
    or 1 per KB if there is only one write. A refused transaction costs the same. The client request
    token of several writes is drawn when the request is complete and kept while it is repeated, so
    a commit whose reply was lost happens once. A single write that counts up (`ADD`) is not
    repeated after a lost reply. Another `commit` of such a write sends nothing either: it succeeds
    if the first one was done, and raises Unavailable if this is unknown.

    A refused transaction succeeds if every put, update and deletion in it was refused because the
    stored item already has what it should store: the transaction was done before.

    In its `with` block, a call without `write=` and another `with Transaction()` raise TypeError:
    they would be committed even if this transaction fails. For writes that are independent of it,
    open `with Transaction(independent=True)`. In a coroutine, use `async with`.

    For `repeat_conflicts` see `client.sending`.

    The end of the block, or `commit`, raises the `otherwise` error of a refused write.

    Raises:
        Refused: several writes were refused; the group has their errors.
        ValueError: it is too large. Nothing was sent.
        AlreadyDone: some writes had been done before, so the others were not written.
        Unavailable, Rejected, TableMissing, TransactionConflict: see `client.sending`.
            Unavailable also if the reply to a single write was lost and the item changed since.
    """

    _alters_data = "add check commit delete discard on_commit put tell_committed try_commit update"

    def __init__(self, *, repeat_conflicts: bool = True, independent: bool = False) -> None:
        self._repeat_conflicts = repeat_conflicts
        self._independent = independent
        self._outer: Transaction | None = None
        self._writes: list[Write] = []
        #: The position in `_writes` of each write of a model's item, by its key.
        self._places: dict[tuple[object, ...], int] = {}
        self._on_commit: list[tuple[object, OnCommit]] = []
        self._is_committed = False
        #: Whether another transaction has done the collected writes before.
        self.is_discarded = False
        self._has_failed = False
        #: Whether a commit got no answer, so that it can be repeated with the same writes.
        self._may_be_committed = False
        #: The refusals of a refused commit, in the order of the writes.
        self.refusals: list[Refusal] = []

    def __bool__(self) -> bool:
        return bool(self._writes)

    def __iter__(self) -> Iterator[Write]:
        """The collected writes, for `sequences.issue(…, also=…)`."""
        return iter(self._writes)

    @_composed
    def put(self, item: PlainModel, condition: Condition, *, otherwise: Otherwise) -> None:
        """Put the whole `item` if `condition` holds."""
        self.add(Write.put(item, condition, otherwise=otherwise))

    @_composed
    def update(
        self, item: PlainModel, changes: Changes, condition: Condition, *, otherwise: Otherwise
    ) -> None:
        """Make `changes` to the stored item with the key of `item` if `condition` holds."""
        self.add(Write.update(item, changes, condition, otherwise=otherwise))

    @_composed
    def delete(self, item: PlainModel, condition: Condition, *, otherwise: Otherwise) -> None:
        """Delete the stored item with the key of `item` if `condition` holds."""
        request = conditional(item._address(), condition)
        self.add(Write(item, "Delete", request, otherwise))

    @_composed
    def check(self, item: PlainModel, condition: Condition, *, otherwise: Exception) -> None:
        """Write nothing, but require `condition` of the stored item with the key of `item`."""
        self.add(Write.check(item, condition, otherwise=otherwise))

    # PynamoDB's.
    save = condition_check = not_supported(
        "A model's own calls join a transaction: create(…, write=write), change(…, write=write)."
    )

    def add(self, *writes: Write) -> None:
        """Add writes that were made before.

        Raises:
            TypeError: it is or may be committed.
            ValueError: two of them write the same item of a model, and cannot become one write.
                None of `writes` is added.
        """
        self.check_open()
        added = [*self._writes]
        places = {**self._places}
        for write in writes:
            if refuse := getattr(write, "refuse_raw_write", None):
                refuse("put")  # it is an item
            if key := write.key:
                place = places.setdefault(key, len(added))
                if place < len(added):
                    added[place] = added[place].merged(write)
                    continue
            added.append(write)
        self._writes, self._places = added, places

    def check_open(self) -> None:
        """Raise TypeError if it is or may be committed, was discarded, or its block failed."""
        if self._is_committed or self._may_be_committed:
            raise TypeError("This transaction was sent already. Open another one.")
        self._check_not_failed()

    def _check_not_failed(self) -> None:
        if self._has_failed:
            raise TypeError("The block of this transaction failed. Open another one.")

    def on_commit(self, about: object, call: OnCommit) -> None:
        """After the commit, call `call` with the item that the write of `about` stored, if known.

        This is for updating objects in memory. `call` cannot add writes.
        """
        self._on_commit.append((unwrapped(about), call))

    def discard(self) -> None:
        """Write nothing, now or later, because the collected writes were done before."""
        self._is_committed = self.is_discarded = True

    def __enter__(self) -> Self:
        self._outer = _innermost.get()
        if self._outer is not None and not self._independent:
            raise TypeError(
                f"{_ON_ITS_OWN} Pass write=write to each call. If it is wanted in any case, open "
                "`with Transaction(independent=True) as own` and pass write=own."
            )
        _innermost.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._leave(kind)
        if kind is None:
            self.commit()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._leave(kind)
        if kind is None:
            await in_thread(self.commit)

    def _leave(self, kind: type[BaseException] | None) -> None:
        _innermost.set(self._outer)
        self._has_failed |= kind is not None

    def commit(self) -> None:
        """Send all collected writes; without any, or after a commit, do nothing."""
        cause = self._refused_by()
        if cause is not None:
            raise self._error() from cause

    def try_commit(self) -> list[Refusal]:
        """Like `commit`, but return the refusals instead of raising them; empty after a commit."""
        return [] if self._refused_by() is None else self.refusals

    def _refused_by(self) -> ConditionFailed | TransactionCancelled | None:
        """Commit. If it was refused, set `refusals` and return the answer."""
        self._check_not_failed()
        if self._is_committed:
            return None
        writes, stored = self._writes, None
        self.refusals = []
        while writes:
            try:
                try:
                    stored = self._send_or_recognize(writes)
                    break
                except (ConditionFailed, TransactionCancelled) as error:
                    answer = error
                    refused = _refusals(writes, answer, committed_before=self._may_be_committed)
            except Unavailable as unavailable:
                if unavailable.maybe_written:
                    self._may_be_committed = True
                    for write in writes:
                        write.note_unanswered()
                raise
            self.refusals = _reported(refused)
            if self.refusals:
                if self._is_done():
                    break
                # After a lost reply, a refusal may not tell whether the transaction was done.
                unknown = [item for item in self.refusals if isinstance(item.error, Unavailable)]
                self._may_be_committed |= bool(unknown)
                return answer
            left_out = {refusal.write for refusal in refused}
            writes = [write.replaced() if write in left_out else write for write in writes]
        self.tell_committed(stored)
        return None

    def tell_committed(self, stored: Item | None = None) -> None:
        """Make the calls of `on_commit`, for a caller that sent the collected writes itself."""
        self._is_committed = True
        for about, call in self._on_commit:
            refusal = self.refusal_of(about)
            call(stored if refusal is None else refusal.stored)

    def _send_or_recognize(self, writes: list[Write]) -> Item | None:
        """Send `writes`. After a lost reply, recognize a write that must not be sent again.

        Returns the item after a single update, if a callback needs it.
        """
        _check_size(writes)
        counting = [write for write in writes if not write.is_repeatable]
        if any(write.is_drawn and write.is_repeatable for write in writes):
            # Its condition is false after it was done, so the transaction is not done twice.
            counting = []
        try:
            if counting and self._may_be_committed:
                raise Unavailable("commit", "an earlier one got no answer", maybe_written=True)
            return self._send_once(writes)
        except Unavailable as error:
            # A write that must not be repeated can be recognized by its mark.
            if not (error.maybe_written and counting and counting[0].is_drawn):
                raise
            stored = None
            with suppress(DynamoError):
                stored = read_item(counting[0].address)
            if not counting[0].is_proven(stored):
                raise
            return stored if len(writes) == 1 else None

    def _send_once(self, writes: list[Write]) -> Item | None:
        """Send a single write as a plain request, and several ones as a transaction."""
        plain = writes[0].plain if len(writes) == 1 and self._repeat_conflicts else None
        if plain is not None:
            [write], (operation, request) = writes, plain
            if operation == "UpdateItem" and self._on_commit:
                request = request | {"ReturnValues": "ALL_NEW"}
            answer = send(operation, request, repeatable=write.is_repeatable)
            return answer.get("Attributes")
        together = {
            "TransactItems": [{write.kind: write.request} for write in writes],
            "ClientRequestToken": str(uuid.uuid4()),
        }
        send("TransactWriteItems", together, repeat_conflicts=self._repeat_conflicts)
        return None

    def _is_done(self) -> bool:
        """Whether the refused writes, and all writes that must be done, are done."""
        # A caller that builds new transactions after conflicts may have sent the mark before, with
        # other writes.
        if self._repeat_conflicts and any(
            refusal.write.is_drawn and refusal.write.is_proven(refusal.stored)
            for refusal in self.refusals
        ):
            return True
        done = {refusal.write for refusal in self.refusals if refusal.is_done}
        needed = [write for write in self._writes if write.must_be_done]
        return bool(needed) and done.issuperset(needed)

    def _error(self) -> Exception:
        # If an item was stored by an earlier request, its guard items are refused as well.
        done = {
            id(refusal.write.part_of or refusal.write.about)
            for refusal in self.refusals
            if refusal.is_done
        }
        left = [refusal for refusal in self.refusals if not refusal.is_done]
        errors = errors_of(item for item in left if id(item.write.part_of) not in done)
        if len(errors) > 1:
            return Refused("Several writes of one transaction were refused", errors)
        return errors[0] if errors else AlreadyDone()

    def refusal_of(self, about: object) -> Refusal | None:
        """The refusal of the write for `about` (the same object), if it was refused."""
        about = unwrapped(about)
        return next((refusal for refusal in self.refusals if refusal.write.about is about), None)


def unwrapped(about: _About) -> _About:
    """`about`, or the object behind it if it is lazy, because writes are found by identity."""
    if not isinstance(about, LazyObject):
        return about
    lazy: Any = about
    _ = lazy.__class__  # loads the object
    return lazy._wrapped


def refuse_inside_of_others(write: object, way: str) -> None:
    """Refuse a call that would commit `write` itself inside the block of another transaction.

    Raises:
        TypeError: with the right `way`.
    """
    innermost = _innermost.get()
    if innermost is not None and innermost is not write:
        raise TypeError(f"{_ON_ITS_OWN} {way}")


def _check_size(writes: list[Write]) -> None:
    if (count := len(writes)) > MAX_WRITES:
        raise ValueError(
            f"This transaction has {count} writes, with those of guard items. At most {MAX_WRITES} "
            "can be done together: split it. Nothing was written."
        )
    # This number of items of any size fits into a request.
    if count <= MAX_BYTES // ITEM_MAX_BYTES:
        return
    if (size := sum(write.sent_bytes for write in writes)) > MAX_BYTES:
        raise ValueError(
            f"The items of this transaction have {size:,} bytes, with guard items. At most "
            f"{MAX_BYTES:,} can be written together: split it. Nothing was written."
        )


def joined(write: Transaction | None) -> AbstractContextManager[Transaction]:
    """The transaction `write`, which its owner commits, or a new one, committed at the end."""
    if not isinstance(write, (Transaction, NoneType)):
        raise TypeError(f"write is a Transaction or None, not {write!r}.")
    return Transaction() if write is None else nullcontext(write)


def _refusals(
    writes: list[Write], answer: ConditionFailed | TransactionCancelled, *, committed_before: bool
) -> list[Refusal]:
    """The refusals of `writes`. With `committed_before`, an earlier commit may have done them."""
    may_be_done = answer.repeated or committed_before
    if isinstance(answer, ConditionFailed):
        [write] = writes
        stored = answer.item
        if may_be_done or callable(write.otherwise):
            stored = stored_after(answer, write.address, may_be_done=may_be_done)
        return [Refusal(write, stored, repeated=may_be_done)]
    refused = []
    for write, reason in zip(writes, answer.reasons, strict=True):
        if reason.code == "ConditionalCheckFailed":
            # A transaction that was only sent again has a token, which shows that it was not done.
            stored = reason.item or None
            refused.append(Refusal(write, stored, repeated=committed_before, resent=may_be_done))
        elif reason.code != "None":
            raise Rejected(answer.operation, reason.code, reason.message) from answer
    return refused


def _reported(refused: list[Refusal]) -> list[Refusal]:
    """The refusals.

    If a write is part of a refused one, its refusal is among the other's `parts`.
    """
    wholes = {id(refusal.write.about) for refusal in refused if refusal.write.part_of is None}
    refused = [refusal for refusal in refused if refusal.write.otherwise is not None]
    parts = [refusal for refusal in refused if id(refusal.write.part_of) in wholes]
    return [
        replace(
            refusal,
            parts=tuple(part for part in parts if part.write.part_of is refusal.write.about),
        )
        for refusal in refused
        if id(refusal.write.part_of) not in wholes
    ]


def errors_of(refusals: Iterable[Refusal]) -> list[Exception]:
    """The errors of `refusals`, in order; one `Taken` for all values of one item."""
    errors: list[Exception] = []
    taken: dict[int, Taken] = {}
    for refusal in refusals:
        error = refusal.error
        whole = refusal.write.part_of
        if not isinstance(error, Taken) or whole is None:
            errors.append(error)
        elif id(whole) in taken:
            taken[id(whole)].add(error)
        else:
            taken[id(whole)] = error
            errors.append(error)
    return errors


def read_together(items: Sequence[PlainModel | Address]) -> list[Item | None]:
    """The items stored under the keys of `items`, all at one instant; None for each absent one.

    Each of `items` is an object, or the TableName and Key of one.

    Unlike Query, Scan and BatchGetItem this is isolated from transactions: it sees each of them
    whole or not at all. At most 100 items, on some engines 25 (`READ_TOGETHER`). Costs 1 request
    and 2 read units per 4 KB of each item.
    """
    gets = [{"Get": item._address() if isinstance(item, PlainModel) else item} for item in items]
    answers = send("TransactGetItems", {"TransactItems": gets})["Responses"]
    return [answer.get("Item") or None for answer in answers]
