"""One transaction of a series: its counter, and an invoice and a guard for each who asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dynamo.client import send
from dynamo.exceptions import DamagedItem, Refused, Unavailable
from dynamo.models import Item
from dynamo.transaction import Transaction
from invoices.documents import (
    Invoice,
    from_item,
    invoice_of_guard,
    request_guard,
    request_guard_key,
)
from invoices.exceptions import DamagedSeries, DateTooEarly, InvoiceError, RequestIdReused
from invoices.heads import Head, counter_key, head_beside, head_of
from invoices.models import InvoiceItem
from sequences import metrics
from sequences.models import Counter


@dataclass(eq=False)
class Ask:
    """One caller's invoice, all but its number, and the `item` of that; `digest` is its draft's.

    The item is made by each caller for itself, while another's transaction is under way.

    `outcome` is kept here as soon as it is known. One request may decide it and the next one,
    sent for others, fail: then the caller is served again, and must not get a second invoice.
    """

    invoice: Invoice
    item: Item
    digest: str
    size_bytes: int
    guarded: bool
    outcome: Invoice | Exception | None = None

    def is_before(self, head: Head) -> bool:
        """Whether the date is too early for a series that has come so far."""
        return self.invoice.issued_at < head.issued_at


class Group:
    """One transaction: the counter, and an invoice and a guard for each of `asks`."""

    def __init__(self, series: str, head: Head, asks: list[Ask]) -> None:
        self._series = series
        self._head = head
        self._asks = asks
        self.invoices = [
            replace(ask.invoice, number=head.number + count) for count, ask in enumerate(asks, 1)
        ]
        self.head_after = Head(head.number + len(asks), asks[-1].invoice.issued_at)
        self._write = Transaction(afresh=True)
        self._counter = counter_key(series)

    def commit(self) -> bool:
        """Send it; whether it is written.

        Raises:
            Hindered: it is not, and nothing is known but that.
            Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
        """
        write, table, refused = self._write, InvoiceItem.table(), _Refused()
        write.add({"Update": self._counter_update()}, about=self, otherwise=refused)
        for ask, invoice in zip(self._asks, self.invoices, strict=True):
            item = ask.item | {"number": {"N": str(invoice.number)}}
            write.add(_put_if_absent(table, item), about=invoice, otherwise=refused)
            if ask.guarded:
                guard = request_guard(invoice, ask.digest)
                write.add(_put_if_absent(table, guard), about=ask, otherwise=refused)
        try:
            write.commit()
        except (_Refused, Refused):
            return False
        except Unavailable as error:
            if error.maybe_written:
                self._give_up_unguarded(error)
            raise
        for ask, invoice in zip(self._asks, self.invoices, strict=True):
            ask.outcome = invoice
        metrics.note("invoice", callers=len(self._asks), numbers=len(self._asks))
        return True

    def _give_up_unguarded(self, error: Unavailable) -> None:
        """Let none be served again who could not be recognised: that might be a second invoice."""
        for ask in self._asks:
            if not ask.guarded:
                ask.outcome = error

    def _counter_update(self) -> dict[str, Any]:
        values = {
            ":before": {"N": str(self._head.number)},
            ":number": {"N": str(self.head_after.number)},
            ":date": {"S": self.head_after.issued_at.isoformat()},
        }
        unchanged = "currentValue = :before"
        if not self._head.number:
            unchanged = f"attribute_not_exists(currentValue) OR {unchanged}"
        return {
            "TableName": Counter.table(),
            "Key": self._counter,
            "UpdateExpression": "SET currentValue = :number, lastDate = :date",
            "ConditionExpression": unchanged,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def answer_the_repeated(self) -> None:
        """Tell the callers whose request id is stored already what it issued."""
        for ask in self._asks:
            refusal = self._write.refusal_of(ask)
            guard = refusal and (refusal.stored or _read_guard(ask))
            if guard:
                ask.outcome = _issued_before(ask, guard)

    def true_head(self) -> Head | None:
        """How far the series really is, where that refused the group.

        It is no farther than we thought where an invoice stands beyond the counter.
        """
        refusal = self._write.refusal_of(self)
        if refusal:
            return head_of(self._series, refusal.stored)
        for invoice in self.invoices:
            if self._write.refusal_of(invoice):
                return head_beside(self._series, invoice.number)
        return None

    def declare_damaged(self) -> None:
        """Tell the callers that wait still that nothing can be issued."""
        for ask in self._asks:
            ask.outcome = ask.outcome or DamagedSeries(self._series)


class _Refused(InvoiceError):
    """One of a group's writes was refused; what follows from it `invoices.issuing` decides."""


def _put_if_absent(table: str, item: Item) -> dict[str, Any]:
    return {
        "Put": {
            "TableName": table,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(series)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def next_group(asks: list[Ask], head: Head) -> list[Ask]:
    """Those of `asks` for the next transaction, by date; who comes too late gets that outcome.

    Of two with one request id the second waits: it will find the first one's guard.
    """
    group: dict[str, Ask] = {}
    for ask in sorted(asks, key=lambda ask: ask.invoice.issued_at):
        if ask.outcome is None and ask.is_before(head):
            ask.outcome = _outcome_of_early(ask, head)
        elif ask.outcome is None:
            group.setdefault(ask.invoice.request_id, ask)
    return list(group.values())


def _outcome_of_early(ask: Ask, head: Head) -> Invoice | Exception:
    if ask.guarded:
        guard = _read_guard(ask)
        if guard:
            return _issued_before(ask, guard)
    return DateTooEarly(ask.invoice.issued_at, head.issued_at)


def _read_guard(ask: Ask) -> Item | None:
    return _read(request_guard_key(ask.invoice.account, ask.invoice.request_id), 0)


def _issued_before(ask: Ask, guard: Item) -> Invoice | Exception:
    """The invoice that the same request issued, if it asked for the same."""
    named = invoice_of_guard(guard)
    stored = _read(*named) if named else None
    if stored is None or stored.get("requestId") != {"S": ask.invoice.request_id}:
        return DamagedSeries(named[0] if named else ask.invoice.series)
    try:
        invoice = from_item(stored)
    except DamagedItem as error:
        return error
    if guard.get("digest") != {"S": ask.digest}:
        return RequestIdReused(ask.invoice.request_id, invoice.label)
    return invoice


def _read(series: str, number: int) -> Item | None:
    key = {"series": {"S": series}, "number": {"N": str(number)}}
    item: Item | None = send("GetItem", {"TableName": InvoiceItem.table(), "Key": key}).get("Item")
    return item or None
