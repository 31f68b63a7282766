"""The sendings that an invoice keeps: each request id sends it at most once.

Before the mail server is asked, the state of the invoice gets an entry with the outcome "unknown":
the claim, which only one call can make. Then the entry gets its outcome. So a process that is
killed in between leaves an entry whose outcome is unknown, and no other call sends the mail again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from pynamodb.expressions.operand import Path

from dynamo import DamagedItem, Transaction, Unavailable
from invoices.exceptions import AlreadyVoided, SendingReused, TooManySendings
from invoices.models import InvoiceItem, InvoiceState
from invoices.store.records import Record, find_record

Outcome = Literal["sent", "refused", "failed", "unknown"]
"""What became of a mail: the mail server accepted it, refused it, was not reached; or unknown.

Only a mail that is "sent" or "unknown" can arrive.
"""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
#: How many sendings an invoice keeps.
MAX_SENDINGS = 10
#: A sending is kept at least this long: twice as long as a form can be sent.
KEPT_AT_LEAST = timedelta(days=2)
#: Longer than a working mail server takes.
UNDER_WAY = timedelta(minutes=1)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sending:
    """An attempt to send an invoice `to` an address; `at` is when it began."""

    request_id: str
    to: str
    at: datetime
    outcome: Outcome
    #: The name of the mail server's error, known to the call that sent the mail. Not stored.
    error: str = field(default="", compare=False)

    @property
    def is_unknown(self) -> bool:
        return self.outcome == "unknown"

    @property
    def may_be_under_way(self) -> bool:
        """Whether another call, which began a moment ago, may still be sending the mail."""
        is_young = datetime.now(UTC) - self.at < UNDER_WAY
        return self.is_unknown and not self.error and is_young


def sendings_of(state: InvoiceState) -> list[Sending]:
    """The sendings that an invoice keeps, the latest first.

    Raises:
        DamagedItem: one of them cannot be read.
    """
    try:
        sendings = [_sending_of(*each) for each in _stored(state).items()]
        return sorted(sendings, key=lambda each: each.at, reverse=True)
    except (KeyError, TypeError, ValueError) as error:
        key = f"{state.series}#{state.number}"
        problem = f"not a map of sendings ({error!r})"
        raise DamagedItem(InvoiceState.table(), key, problem) from error


def _sending_of(request_id: str, values: dict[str, str]) -> Sending:
    at = datetime.fromisoformat(values["at"]).astimezone(UTC)
    outcome = OUTCOMES[OUTCOMES.index(values["outcome"])]
    return Sending(request_id, values["to"], at, outcome)


def _stored(state: InvoiceState) -> dict[str, Any]:
    return state.sendings.as_dict() if state.sendings is not None else {}


def known_sending(record: Record, request_id: str, to: str) -> Sending | None:
    """The sending that has this request id. Raises SendingReused."""
    for each in sendings_of(record.state):
        if each.request_id == request_id:
            if each.to != to:
                raise SendingReused(request_id, each.to)
            return each
    return None


def claim_sending(record: Record, request_id: str, to: str) -> tuple[Sending, bool]:
    """The sending with this request id, and whether this call made its entry.

    Each repetition means that another call has changed the entries, so it ends.
    """
    invoice = record.invoice
    while True:
        if known := known_sending(record, request_id, to):
            return known, False
        if record.invoice.is_voided:
            raise AlreadyVoided(invoice.label, record.invoice.void_reason)
        claim = Sending(request_id, to, datetime.now(UTC), "unknown")
        before = _stored(record.state)
        kept = _with_room(sendings_of(record.state), claim.at, invoice.label)
        stored = {each.request_id: before[each.request_id] for each in kept}
        stored[request_id] = {"to": to, "at": claim.at.isoformat(), "outcome": claim.outcome}
        path = InvoiceState.sendings
        unchanged = path == before if record.state.sendings is not None else path.does_not_exist()
        changed = AlreadyVoided(invoice.label, ""), SendingReused(request_id, "")
        write = Transaction()
        issued = InvoiceItem.at(invoice.series, invoice.number)
        write.check(issued, Path("status") == "issued", otherwise=changed[0])
        write.update(record.state, [path.set(stored)], unchanged, otherwise=changed[1])
        if not write.try_commit():
            return claim, True
        record = find_record(invoice.account, invoice.label)


def _with_room(sendings: Sequence[Sending], now: datetime, label: str) -> list[Sending]:
    """The sendings to keep when another one is added, the latest first.

    The oldest go, those with an unknown outcome last.
    """
    removable = [each for each in sendings if now - each.at > KEPT_AT_LEAST]
    removable.sort(key=lambda each: (each.is_unknown, each.at))
    excess = max(0, len(sendings) + 1 - MAX_SENDINGS)
    if excess > len(removable):
        raise TooManySendings(label)
    return [each for each in sendings if each not in removable[:excess]]


def store_outcome(record: Record, sending: Sending) -> None:
    """Store the outcome. If the database does not answer, it stays unknown."""
    entry = InvoiceState.sendings[sending.request_id]
    try:
        with Transaction() as write:
            write.update(
                record.state,
                [entry["outcome"].set(sending.outcome)],
                entry["at"] == sending.at.isoformat(),
                # Removed, because the mail server took two days.
                otherwise=lambda refusal: None,
            )
    except Unavailable as error:
        logger.error("The outcome of a mail (%s) was not stored: %s", sending.outcome, error)
