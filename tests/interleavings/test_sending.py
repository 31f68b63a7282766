"""Invoices sent by several processes at once, in every order of their requests."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from django.core import mail

from accounts.conf import LIMITS
from accounts.models import User
from invoices.exceptions import AlreadySent, AlreadyVoided
from invoices.output.sending import send_invoice
from invoices.store.records import Sending, find_record, sendings_of
from invoices.store.settlement import void
from tests.interleavings.conftest import LOSSES, Explore
from tests.interleavings.processes import apart
from tests.interleavings.scheduler import Scenario
from tests.invoice_factories import DAY, assert_invoices_whole, issued
from tests.operations import Stored
from tests.site_operations import INVOICES

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")

ANN, FIRST = "ann", f"{DAY.year}-000001"
BOB = "bob@example.org"


@pytest.fixture(autouse=True)
def _processes(settings: Any, engine: str) -> Iterator[None]:
    # Their requests would multiply the orders, and have tests of their own.
    settings.ACCOUNTS_LIMITS = dict.fromkeys(LIMITS)
    ann().insert()
    with apart():
        yield


def ann() -> User:
    names = {"username": "ann", "email": "ann@example.org", "password": "!"}
    return User(ANN, **names, email_confirmed_at=datetime.now(UTC))


def send(request_id: str = "r") -> Sending:
    return send_invoice(ann(), find_record(ANN, FIRST), BOB, request_id=request_id)


def race(*acts: Callable[[], object], expects: Callable[[list[Any]], None]) -> Scenario:
    """These acts on an issued invoice, of which no mail was sent yet."""
    INVOICES[0].restore(_issued())
    mail.outbox.clear()
    return Scenario(acts, expects, _always, is_alike=len({*acts}) == 1)


def _always(wrote: bool) -> None:
    if wrote:
        assert_invoices_whole()


@cache
def _issued() -> Stored:
    INVOICES[0].empty()
    issued(ANN)
    return INVOICES[0].stored()


def stored() -> list[str]:
    """What the invoice says about its sendings."""
    return [item.outcome for item in sendings_of(find_record(ANN, FIRST).state)]


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({"deaths": 1}, id="deaths"),
        pytest.param({"losses": 1}, id="losses", marks=pytest.mark.slow),
        pytest.param({"losses": 1, "forgetful": True}, id="forgetful", marks=pytest.mark.slow),
    ],
)
def test_one_request_sends_at_most_once(explore: Explore, faults: dict[str, Any]) -> None:
    reached = set()

    def expects(outcomes: list[Any]) -> None:
        [said] = stored() or [""]
        assert len(mail.outbox) <= 1
        assert said != "sent" or len(mail.outbox) == 1
        # Each caller learns the outcome, or that it is unknown.
        told = {outcome.outcome for outcome in outcomes if isinstance(outcome, Sending)}
        assert told <= {"waiting", "unknown", "sent"}
        assert "sent" not in told or len(mail.outbox) == 1
        reached.add((said, len(mail.outbox)))

    explore(lambda: race(send, send, expects=expects), **faults)

    # Dead, or in doubt about its own write, before the task ran; or so before the outcome was
    # stored.
    unknown = {
        "deaths": {("waiting", 0), ("unknown", 1)},
        "losses": set(),
        "forgetful": {("waiting", 0), ("unknown", 0)},
    }
    assert reached == {("sent", 1)}.union(*(unknown[name] for name in faults))


# Each of 1,800 orders makes two PDFs. With a lost request it did not end within half an hour.
@pytest.mark.slow
def test_two_requests_are_both_on_record(explore: Explore) -> None:
    def expects(outcomes: list[Any]) -> None:
        assert [type(outcome) for outcome in outcomes] == [Sending] * 2
        assert (stored(), len(mail.outbox)) == (["sent", "sent"], 2)

    explore(lambda: race(send, lambda: send("another"), expects=expects))


@pytest.mark.parametrize("losses", LOSSES)
def test_an_invoice_is_either_sent_or_voided(explore: Explore, losses: int) -> None:
    reached = set()

    def expects(outcomes: list[Any]) -> None:
        sent, voided = (type(outcome) for outcome in outcomes)
        reached.add((sent, voided))
        is_sent = sent is Sending
        assert (stored(), len(mail.outbox)) == (["sent"] * is_sent, is_sent)
        assert find_record(ANN, FIRST).invoice.is_voided != is_sent

    explore(lambda: race(send, lambda: void(ANN, FIRST, "Wrong"), expects=expects), losses=losses)

    assert reached == {(Sending, AlreadySent), (AlreadyVoided, type(None))}
