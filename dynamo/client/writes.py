"""One write of a transaction: under which condition it is done, and what its refusal means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, cast

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from dynamo.client.plain import PlainModel
from dynamo.exceptions import AlreadyDone, Unavailable
from dynamo.wire.types import Address, Item, Request
from dynamo.wire.updates import Update, conditional, with_defaults
from dynamo.wire.values import is_same_value, item_bytes

#: The single requests that do the same as an action of a transaction.
_PLAIN = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}


@dataclass(frozen=True)
class Refusal:
    """One write whose condition was false. `stored` is the stored item, if there is one.

    `repeated` says that an earlier attempt, of a plain request or by another commit, may have been
    carried out. If so, the condition may be false because the write was done.
    """

    write: Write
    stored: Item | None
    repeated: bool = False
    #: Whether a transaction was sent again after a lost reply. Its token shows that it was not done
    #: before, unless the engine has forgotten the token.
    resent: bool = False
    #: The refusals of the writes that are `part_of` the refused one.
    parts: tuple[Refusal, ...] = ()

    @cached_property
    def error(self) -> Exception:
        """The error of this refusal; AlreadyDone if `stored` has what the write should store."""
        return self.answer or AlreadyDone()

    @property
    def answer(self) -> Exception | None:
        """The result of `otherwise`; None if `stored` has what the write should store.

        If `otherwise` is a function, it decides. An error is final, except after a lost reply. In
        that case, the write was done if `stored` is its result, and otherwise the outcome is
        unknown.
        """
        otherwise = self.write.otherwise
        if not isinstance(otherwise, Exception):
            return None if otherwise is None else otherwise(self)
        if not self.repeated:
            return otherwise
        return None if self.write.is_done(self.stored) else self.unknown()

    @property
    def is_done(self) -> bool:
        return isinstance(self.error, AlreadyDone)

    def unknown(self) -> Unavailable:
        """The error of a write that may have been done and overwritten afterwards."""
        reason = "its reply was lost, and the item changed meanwhile"
        operation = _PLAIN.get(self.write.kind, "TransactWriteItems")
        return Unavailable(operation, reason, maybe_written=True)


#: The meaning of a refusal: an error, or a function that returns one. The function returns None if
#: the stored item has what the write should store.
Otherwise = Exception | Callable[[Refusal], Exception | None]

#: The changes of an update, as data or as PynamoDB's actions.
Changes = Update | list[Action]


@dataclass(eq=False)
class Write:
    """One write under a condition. `otherwise` says what its refusal means.

    `about` is the object that the write is for; its refusal is found by it. If `part_of` is the
    object of another write, the refusal of that write is reported for both.

    `request` must ask for the stored item (`ReturnValuesOnConditionCheckFailure` = ALL_OLD).
    Without `otherwise`, a refused write is replaced by the kind and the request of `instead`.
    """

    about: object
    #: `Put`, `Update`, `Delete` or `ConditionCheck`.
    kind: str
    #: The parameters of this entry of TransactItems, and of a plain request.
    request: Request
    otherwise: Otherwise | None
    instead: tuple[str, Request] | None = None
    part_of: object = None
    #: The changes of an update.
    changes: Update | None = None
    #: The condition of an update or a check, so that another one can join it.
    condition: Condition | None = None
    #: Whether the condition holds for a stored item, if only the item decides this.
    holds: Callable[[Item | None], bool] | None = None
    #: Whether a single write is also sent as a transaction, whose token recognizes it after a lost
    #: reply.
    needs_token: bool = False
    #: Whether the item has these values already.
    is_idle: bool = False
    #: Whether it contains a value that was drawn for this transaction. If that is stored, the
    #: transaction was committed.
    is_drawn: bool = False

    @classmethod
    def put(
        cls, item: PlainModel, condition: Condition, *, otherwise: Otherwise, is_drawn: bool = False
    ) -> Self:
        """Put the whole `item` if `condition` holds."""
        request = conditional({"TableName": item.table(), "Item": item.serialize()}, condition)
        return cls(item, "Put", request, otherwise, is_drawn=is_drawn)

    @classmethod
    def update(
        cls, item: PlainModel, changes: Changes, condition: Condition, *, otherwise: Otherwise
    ) -> Self:
        """Make `changes` to the stored item with the key of `item` if `condition` holds."""
        changes = changes if isinstance(changes, Update) else Update.of_actions(changes)
        request = changes.request(item._address(), condition)
        return cls(item, "Update", request, otherwise, changes=changes, condition=condition)

    @classmethod
    def check(cls, item: PlainModel, condition: Condition, *, otherwise: Otherwise) -> Self:
        """Write nothing, but require `condition` of the stored item with the key of `item`."""
        condition = with_defaults(item._named_attributes(), condition)
        request = conditional(item._address(), condition)
        return cls(item, "ConditionCheck", request, otherwise, condition=condition)

    @property
    def key(self) -> tuple[object, ...] | None:
        """The table and the key of the model's item. A transaction takes only one write of an item.

        None if it is not known which item of which model it writes.
        """
        if not isinstance(self.about, PlainModel):
            return None
        holder = self.request.get("Key") or self.request["Item"]
        names = self.about.key_attribute_names()
        values = (value for name in names for value in holder[name].values())
        return self.request["TableName"], *values

    def merged(self, other: Write) -> Write:
        """The write that combines this one and `other`, a later write of the same item.

        A check joins the write of its item: a put satisfies it, an update or another check also
        requires its condition.

        Raises:
            ValueError: the two cannot be one.
        """
        one, check = (self, other) if other.kind == "ConditionCheck" else (other, self)
        if check.kind == "ConditionCheck" and one.kind == "Put":
            return one
        if check.kind == "ConditionCheck" and one.condition is not None:
            return one._under(check)
        table, *key = self.key or ()
        way = "combine the changes of one item in one call."
        if "Delete" in {self.kind, other.kind}:
            way = "an item that it deletes can be neither changed nor required."
        raise ValueError(f"This transaction already writes the item {tuple(key)} of {table}: {way}")

    def _under(self, check: Write) -> Write:
        """This write under the condition of `check` as well."""
        condition = cast(Condition, self.condition)
        other = cast(Condition, check.condition)
        if condition == other:
            return self
        both = condition & other
        request = conditional(self.address, both)
        if self.kind == "Update":
            request = cast(Update, self.changes).request(self.address, both)

        def otherwise(refusal: Refusal) -> Exception | None:
            # If neither condition is known to hold, the error of the first one is reported.
            mine = self.holds is None or not self.holds(refusal.stored)
            return replace(refusal, write=self if mine else check).answer

        return replace(
            self,
            request=request,
            condition=both,
            otherwise=otherwise,
            holds=None,
            is_idle=self.is_idle and check.is_idle,
        )

    @property
    def sent_bytes(self) -> int:
        """The size of the item that a put stores; of other writes, the size of the sent values.

        The item that an update changes may be larger.
        """
        request = self.request
        if "Item" in request:
            return item_bytes(request["Item"])
        return item_bytes({**request["Key"], **request.get("ExpressionAttributeValues", {})})

    @property
    def address(self) -> Address:
        """The parameters of a request that name its item."""
        request = self.request
        key = request.get("Key")
        if key is None:
            item = cast(PlainModel, self.about)
            key = {name: request["Item"][name] for name in item.key_attribute_names()}
        return {"TableName": request["TableName"], "Key": key}

    def replaced(self) -> Write:
        """The write that replaces this one after a refusal, if it has no `otherwise`."""
        kind, request = cast(tuple[str, Request], self.instead)
        return replace(self, kind=kind, request=request, instead=(self.kind, self.request))

    @property
    def must_be_done(self) -> bool:
        """Whether a transaction is done only if `stored` shows this write."""
        return self.kind in _PLAIN and self.otherwise is not None and self.part_of is None

    def is_done(self, stored: Item | None) -> bool:
        """Whether `stored` is exactly what this write stores."""
        if self.kind == "Put":
            return is_same_value({"M": stored or {}}, {"M": self.request["Item"]})
        if self.kind == "Delete":
            return stored is None
        return self.changes is not None and self.changes.is_done(stored)

    @property
    def plain(self) -> tuple[str, Request] | None:
        """The plain request that does the same at half the cost; None if there is none."""
        if self.needs_token or self.kind not in _PLAIN:
            return None
        return _PLAIN[self.kind], self.request

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again as a plain request after a lost reply."""
        return self.changes is None or self.changes.is_repeatable

    def is_proven(self, stored: Item | None) -> bool:
        """Whether `stored` has a mark of this write. Equal values are not a proof."""
        return self.is_drawn and self.is_done(stored)

    def note_unanswered(self) -> None:
        """Called if there was no answer, and the write may have been done."""
