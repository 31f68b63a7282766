"""Several writes, all or none: one TransactWriteItems, each write with its own error.

Nobody else counts cancellation reasons. A service says, beside each write, what it means when the
condition of that write is false:

    with Transaction() as write:
        write.put(guard, Guard.pk.does_not_exist(), otherwise=EmailTaken(email))
        write.update(user, [User.email.set(email)], unchanged, otherwise=StaleUser(user.pk))

Source: "Amazon DynamoDB Transactions: How it works",
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from dynamo.client import send
from dynamo.exceptions import ConditionFailed, Refused, Rejected, TransactionCancelled
from dynamo.models import Item, Model

_ALL_OLD = "ALL_OLD"

#: Who has many items to read takes so many together. DynamoDB took 25 until 2022 and takes 100
#: since; moto and older stand-ins still take 25. Read units are the same.
READ_TOGETHER = 25


@dataclass(frozen=True)
class Refusal:
    """One write whose condition was false: the error it means, and what is stored (or None)."""

    write: Write
    error: Exception
    stored: Item | None

    @property
    def about(self) -> object:
        """The object that the write is for."""
        return self.write.about


@dataclass(frozen=True, eq=False)
class Write:
    """One write under a condition. `otherwise` is the error that its refusal means.

    `about` is the object that the write is for, by which its refusal is found.

    `action` is the entry of TransactItems as on the wire; it must ask for the stored item
    (`ReturnValuesOnConditionCheckFailure` = ALL_OLD). Without `otherwise`, a refused write is
    replaced by `instead`.
    """

    about: object
    action: dict[str, Any]
    otherwise: Exception | None
    instead: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def put(cls, item: Model, condition: Condition, *, otherwise: Exception) -> Self:
        """Put the whole `item` if `condition` holds."""
        request = item.get_save_kwargs_from_instance(condition, _ALL_OLD)
        return cls(item, {"Put": request}, otherwise)

    @classmethod
    def update(
        cls, item: Model, actions: list[Action], condition: Condition, *, otherwise: Exception
    ) -> Self:
        """Apply `actions` to the stored item with the key of `item` if `condition` holds."""
        request = item.get_update_kwargs_from_instance(actions, condition, _ALL_OLD)
        return cls(item, {"Update": request}, otherwise)

    @classmethod
    def delete(cls, item: Model, condition: Condition, *, otherwise: Exception) -> Self:
        """Delete the stored item with the key of `item` if `condition` holds."""
        request = item.get_delete_kwargs_from_instance(condition, _ALL_OLD)
        return cls(item, {"Delete": request}, otherwise)

    @classmethod
    def check(cls, item: Model, condition: Condition, *, otherwise: Exception) -> Self:
        """Write nothing, but require `condition` of the stored item with the key of `item`."""
        request = item.get_delete_kwargs_from_instance(condition, _ALL_OLD)
        return cls(item, {"ConditionCheck": request}, otherwise)

    @property
    def key(self) -> tuple[str, str]:
        """The table and the key that it concerns: a transaction takes each key once."""
        ((kind, request),) = self.action.items()
        if kind == "Put":
            # Only the key attributes matter; without a model, the whole item stands for them.
            names = self.about.key_attribute_names() if isinstance(self.about, Model) else None
            item: Item = request["Item"]
            wire = {name: item[name] for name in names} if names else item
        else:
            wire = request["Key"]
        return request["TableName"], json.dumps(wire, sort_keys=True, default=str)

    def swapped(self) -> Write:
        """The write with its other action."""
        return replace(self, action=self.instead, instead=self.action)


class Transaction:
    """Collects writes and commits them at the end of its `with` block (or by `commit`).

    An exception in the block writes nothing. At most 100 writes of 4 MB, one per item. Costs one
    request and two write units per KB of each item; refused transactions cost the same. The
    client request token is drawn when the bytes are complete and kept while they are repeated, so
    a commit whose reply was lost happens once.

    With `afresh` it is not repeated where another transaction was in the way; see
    `dynamo.client.send`.

    Raises (from the block's end, or `commit`):
        the `otherwise` error of the refused write; Refused, a group of them, where several were.
        Unavailable, Rejected, TableMissing, Hindered: see `dynamo.client.send`.
    """

    def __init__(self, *, afresh: bool = False) -> None:
        self._afresh = afresh
        self._writes: list[Write] = []
        #: Filled by a refused commit, in the order of the writes.
        self.refusals: list[Refusal] = []

    def put(self, item: Model, condition: Condition, *, otherwise: Exception) -> None:
        """Put the whole `item` where `condition` holds."""
        self.add(Write.put(item, condition, otherwise=otherwise))

    def update(
        self, item: Model, actions: list[Action], condition: Condition, *, otherwise: Exception
    ) -> None:
        """Apply `actions` to the stored item that has `item`'s key, where `condition` holds."""
        self.add(Write.update(item, actions, condition, otherwise=otherwise))

    def delete(self, item: Model, condition: Condition, *, otherwise: Exception) -> None:
        """Delete the stored item that has `item`'s key, where `condition` holds."""
        self.add(Write.delete(item, condition, otherwise=otherwise))

    def delete_if(self, item: Model, condition: Condition) -> None:
        """Delete the stored item where `condition` holds, else leave it and go on without.

        Where writes of this kind alone are refused, the transaction is sent again, now under the
        condition that `condition` does not hold: one who makes it true meanwhile is not missed.
        """
        request = item.get_delete_kwargs_from_instance(condition, _ALL_OLD)
        left = item.get_delete_kwargs_from_instance(~condition, _ALL_OLD)
        self._writes.append(Write(item, {"Delete": request}, None, {"ConditionCheck": left}))

    def check(self, item: Model, condition: Condition, *, otherwise: Exception) -> None:
        """Write nothing to the item that has `item`'s key, but demand that `condition` holds."""
        self.add(Write.check(item, condition, otherwise=otherwise))

    def add(self, *writes: Write) -> None:
        """Add writes that were made before."""
        self._writes += writes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.commit()

    def commit(self) -> None:
        """Send everything that was collected; with nothing collected, do nothing."""
        cancelled = self._sent()
        if cancelled is not None:
            raise _one_or_all(self.refusals) from cancelled

    def try_commit(self) -> list[Refusal]:
        """As `commit`, but return the refusals instead of raising them; empty once committed."""
        return [] if self._sent() is None else self.refusals

    def commit_along(self, along: Companion, about: object) -> None:
        """Commit with what `along` adds, as the plain write of `about` that it is without.

        Raises:
            ConditionFailed: that write's condition was false, whatever became of the others.
            what `along` says of its own writes, where they alone were refused.
        """
        along(self)
        cancelled = self._sent()
        if refusal := self.refusal_of(about):
            raise ConditionFailed(
                "TransactWriteItems", repeated=False, stored=refusal.stored
            ) from cancelled
        if cancelled is not None:
            raise _one_or_all(self.refusals) from cancelled

    def _sent(self) -> TransactionCancelled | None:
        """None where it is committed; else the answer that refused it, and `refusals` are known."""
        writes = self._writes
        while writes:
            try:
                self._send(writes)
            except TransactionCancelled as cancelled:
                refused = _refused(writes, cancelled)
                self.refusals = [
                    Refusal(write, write.otherwise, stored)
                    for write, stored in refused.items()
                    if write.otherwise is not None
                ]
                if self.refusals:
                    return cancelled
                writes = [write.swapped() if write in refused else write for write in writes]
            else:
                break
        return None

    def _send(self, writes: list[Write]) -> None:
        request = {
            "TransactItems": [write.action for write in writes],
            "ClientRequestToken": str(uuid.uuid4()),
        }
        send("TransactWriteItems", request, afresh=self._afresh)

    def refusal_of(self, about: object) -> Refusal | None:
        """The refusal of the write for `about` (that very object), if it was refused."""
        return next((each for each in self.refusals if each.about is about), None)


Companion = Callable[[Transaction], None]
"""Adds writes to the transaction of an operation, which then happens with them or not at all.

A commit that is refused is sent anew in some operations: each time it is called again.
"""


def _refused(writes: list[Write], cancelled: TransactionCancelled) -> dict[Write, Item | None]:
    """The writes whose condition was false, with what is stored in their place."""
    refused = {}
    for write, reason in zip(writes, cancelled.reasons, strict=True):
        if reason.code == "ConditionalCheckFailed":
            refused[write] = reason.item or None
        elif reason.code != "None":
            raise Rejected(cancelled.operation, reason.code, reason.message) from cancelled
    return refused


def _one_or_all(refusals: list[Refusal]) -> Exception:
    if len(refusals) == 1:
        return refusals[0].error
    errors = [refusal.error for refusal in refusals]
    return Refused("Several writes of one transaction were refused", errors)


def read_together(items: list[Model]) -> list[Item | None]:
    """What is stored under the keys of `items`, all at one instant; None where nothing is.

    Unlike Query, Scan and BatchGetItem this is isolated from transactions: it sees each of them
    whole or not at all. At most 100 items, on some engines 25 (`READ_TOGETHER`). Costs 1 request,
    2 read units per 4 KB of each item.
    """
    gets = []
    for item in items:
        request = item.get_delete_kwargs_from_instance()
        gets.append({"Get": {"TableName": request["TableName"], "Key": request["Key"]}})
    answers = send("TransactGetItems", {"TransactItems": gets})["Responses"]
    return [answer.get("Item") or None for answer in answers]
