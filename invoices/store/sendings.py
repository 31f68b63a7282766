"""The mails that brought an invoice to its customer, or were to: what its state keeps of them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from pynamodb.expressions.condition import Condition

from dynamo import DamagedItem
from invoices.models import InvoiceState

#: What became of a mail: its task waits; the mail server accepted it, refused it, or was not
#: reached; or unknown. A mail that was "refused" or "failed" cannot arrive.
Outcome = Literal["waiting", "sent", "refused", "failed", "unknown"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Sending:
    """An attempt to send an invoice `to` an address; `at` is when it began."""

    request_id: str
    to: str
    at: datetime
    outcome: Outcome
    #: The id of its task; empty if no worker runs it.
    task: str = ""


def sendings_of(state: InvoiceState) -> list[Sending]:
    """The sendings that an invoice keeps, the latest first.

    One that waits may have a task that has failed for good: see `output.sending.current_sendings`.

    Raises:
        DamagedItem: one of them cannot be read.
    """
    try:
        sendings = [
            Sending(
                request_id,
                values["to"],
                datetime.fromisoformat(values["at"]).astimezone(UTC),
                OUTCOMES[OUTCOMES.index(values["outcome"])],
                values.get("task", ""),
            )
            for request_id, values in stored_sendings(state).items()
        ]
        return sorted(sendings, key=lambda sending: sending.at, reverse=True)
    except (KeyError, TypeError, ValueError) as error:
        key = f"{state.series}#{state.number}"
        problem = f"not a map of sendings ({error!r})"
        raise DamagedItem(InvoiceState.table(), key, problem) from error


def may_have_arrived(state: InvoiceState) -> bool:
    """Whether the customer may have a mail with the invoice."""
    return any(item.outcome in {"waiting", "sent", "unknown"} for item in sendings_of(state))


def stored_sendings(state: InvoiceState) -> dict[str, Any]:
    """The sendings as they are stored, by request id."""
    return state.sendings.as_dict() if state.sendings is not None else {}


def same_sendings(state: InvoiceState) -> Condition:
    """The condition that no sending was added or changed since `state` was read."""
    path = InvoiceState.sendings
    if state.sendings is None:
        return path.does_not_exist()
    return path == stored_sendings(state)
