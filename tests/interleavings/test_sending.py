"""Invoices sent by several processes at once, in every order of their requests."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core import mail

from accounts.limits.windows import DEFAULTS
from accounts.models import User
from invoices.output.sending import Sending, send_invoice, sendings_of
from invoices.store.records import find_record
from invoices.store.settlement import void
from tests.interleavings.accounts import words_of
from tests.interleavings.conftest import LOSSES, Explore
from tests.interleavings.invoices import ANN, InvoiceScenario
from tests.interleavings.operations import DEAD
from tests.interleavings.processes import Processes, apart
from tests.invoice_factories import DAY

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")

FIRST = f"{DAY.year}-000001"
BOB = "bob@example.org"


@pytest.fixture
def processes(settings: Any) -> Iterator[Processes]:
    # Their requests would multiply the orders, and have tests of their own.
    settings.ACCOUNTS_LIMITS = dict.fromkeys(DEFAULTS)
    with apart() as each:
        yield each


def send(request_id: str = "r") -> Sending:
    ann = User(ANN, email="ann@example.org", email_confirmed_at=datetime.now(UTC))
    return send_invoice(ann, find_record(ANN, FIRST), BOB, request_id=request_id)


class SendingScenario(InvoiceScenario):
    """An issued invoice, and no mail yet."""

    def __init__(self, processes: Processes, **values: Any) -> None:
        super().__init__(processes, before=1, **values)
        mail.outbox.clear()

    @property
    def outcomes(self) -> list[str]:
        """What the invoice says about its sendings."""
        return [each.outcome for each in sendings_of(find_record(ANN, FIRST).state)]


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({"deaths": 1}, id="deaths"),
        pytest.param({"losses": 1}, id="losses", marks=pytest.mark.slow),
        pytest.param({"losses": 1, "forgetful": True}, id="forgetful", marks=pytest.mark.slow),
    ],
)
def test_one_request_sends_at_most_once(
    explore: Explore, processes: Processes, faults: dict[str, Any]
) -> None:
    reached = set()

    def make() -> SendingScenario:
        scenario = SendingScenario(processes)
        scenario.operations = [send, send]

        def expects(outcomes: list[Any]) -> None:
            [stored] = scenario.outcomes or [""]
            assert len(mail.outbox) <= 1
            assert stored != "sent" or len(mail.outbox) == 1
            # Each caller learns the outcome, or that it is unknown.
            told = {each.outcome for each in outcomes if isinstance(each, Sending)}
            assert told <= {"unknown", "sent"}
            assert "sent" not in told or len(mail.outbox) == 1
            if DEAD not in outcomes and not faults.get("forgetful"):
                assert (stored, len(mail.outbox)) == ("sent", 1)
            reached.add((stored, len(mail.outbox)))

        scenario.expects = expects
        return scenario

    explore(make, **faults)

    # Dead before its outcome was stored, or not able to recognize its own claim.
    unknown = {"deaths": {("unknown", 1)}, "losses": set(), "forgetful": {("unknown", 0)}}
    assert reached == {("sent", 1)}.union(*(unknown[name] for name in faults))


@pytest.mark.parametrize("losses", LOSSES)
def test_two_requests_are_both_on_record(
    explore: Explore, processes: Processes, losses: int
) -> None:
    def make() -> SendingScenario:
        scenario = SendingScenario(processes)
        scenario.operations = [send, lambda: send("another")]

        def expects(outcomes: list[Any]) -> None:
            assert words_of(outcomes) == ["done", "done"]
            assert (scenario.outcomes, len(mail.outbox)) == (["sent", "sent"], 2)

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


def test_an_invoice_that_is_voided_first_is_not_sent(
    explore: Explore, processes: Processes
) -> None:
    reached = set()

    def make() -> SendingScenario:
        scenario = SendingScenario(processes)
        scenario.operations = [send, lambda: void(ANN, FIRST, "Wrong")]

        def expects(outcomes: list[Any]) -> None:
            end = words_of(outcomes)[0]
            reached.add(end)
            assert find_record(ANN, FIRST).invoice.is_voided
            sent = end == "done"
            assert (scenario.outcomes, len(mail.outbox)) == (["sent"] * sent, sent)

        scenario.expects = expects
        return scenario

    explore(make, losses=1)

    assert reached == {"done", "AlreadyVoided"}
