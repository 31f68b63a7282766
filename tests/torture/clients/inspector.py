"""A client that runs the site's own checks while others write: they must report nothing."""

from __future__ import annotations

import random

from accounts.models import User
from dynamo._internal.checking.guards import FAULTS, check_guards
from invoices.store.check import check_invoices
from tests.torture.clients.invoices import shared_account
from tests.torture.history import Journal


class Inspector:
    def __init__(self, journal: Journal, chance: random.Random) -> None:
        self._journal = journal
        self._chance = chance

    def step(self) -> None:
        """Run a check; that of invoices costs a request for each year of a century."""
        self._chance.choice([self._guards, self._guards, self._guards, self._invoices])()

    def _guards(self) -> None:
        with self._journal.call("inspect", what="guards") as call:
            call.ok(wrong=wrong_guards())

    def _invoices(self) -> None:
        # Of one account only; all are checked in the end.
        account = shared_account(self._chance)
        with self._journal.call("inspect", what="invoices", account=account) as call:
            call.ok(wrong=wrong_series(account))


def wrong_guards() -> list[str]:
    """What `checkguards` reports."""
    with check_guards(User) as report:
        return [
            f"{fault} {key} of {pk}"
            for fault in FAULTS
            for pk, key, _outcome in report.findings(fault)
        ]


def wrong_series(account: str | None = None) -> list[str]:
    """What `checkinvoices` reports of one account, or of all."""
    return [str(report) for report in check_invoices(account) if not report.is_sound]
