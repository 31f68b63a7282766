"""A client that runs the site's own checks while others write: they must report nothing."""

from accounts.models import User
from dynamo.tables.guards import check_guards
from invoices.store.check import check_invoices
from tests.torture.clients.client import Client
from tests.torture.clients.invoices import shared_account
from tests.torture.clients.numbers import Plate


class Inspector(Client):
    def step(self) -> None:
        """Run a check; that of invoices costs a request for each year of a century."""
        if self.chance.random() < 0.75:
            with self.journal.call("inspect", what="guards") as call:
                call.ok(wrong=wrong_guards())
        else:
            # Of one account only; all are checked in the end.
            account = shared_account(self.chance)
            with self.journal.call("inspect", what="invoices", account=account) as call:
                call.ok(wrong=wrong_series(account))


def wrong_guards() -> list[str]:
    """What `checkguards`, and `checkunique` of plates, report."""
    wrong = []
    for model in (User, Plate):
        wrong += [
            f"{fault} {key} of {pk}"
            for fault, findings in check_guards(model).found.items()
            for pk, key, _outcome in findings.listed
        ]
    return wrong


def wrong_series(account: str | None = None) -> list[str]:
    """What `checkinvoices` reports of one account, or of all."""
    return [str(report) for report in check_invoices(account) if not report.is_sound]
