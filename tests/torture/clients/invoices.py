"""Clients that issue, void and read invoices of a few shared accounts."""

import random
import time
import uuid
from dataclasses import dataclass, field

from invoices.document.invoice import Customer, label_of
from invoices.exceptions import AlreadyVoided, InvoiceError, UnknownInvoice
from invoices.store import records, settlement
from invoices.store.issuing import issue_invoice
from tests.invoice_factories import DAY, SELLER, draft
from tests.torture.clients.client import Client

#: After so many seconds all clients use other accounts, so that lists stay short.
ERA_SECONDS = 60.0
ACCOUNTS = 2


def shared_account(chance: random.Random) -> str:
    """The key of an account that other clients use too."""
    era = int(time.monotonic() / ERA_SECONDS)
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{era} {chance.randrange(ACCOUNTS)}"))


@dataclass
class InvoiceClient(Client):
    """A client. It repeats some of its requests."""

    _asked: list[tuple[str, str]] = field(default_factory=list)
    _issued: list[tuple[str, int]] = field(default_factory=list)

    def step(self) -> None:
        """Make one call."""
        what = self.chance.random()
        if self._asked and what < 0.12:
            self._issue(*self.chance.choice(self._asked[-5:]))
        elif what < 0.55 or not self._issued:
            self._issue(shared_account(self.chance), self.new_id())
        else:
            account, number = self.chance.choice(self._issued[-6:])
            # Or the next number, which may not exist yet.
            number = max(1, number + self.chance.choice([-1, 0, 0, 0, 1]))
            (self._void if what < 0.7 else self._read)(account, number)

    def _issue(self, account: str, request: str) -> None:
        self._asked.append((account, request))
        asked = {"account": account, "request": request, "customer": f"Customer of {request}"}
        asked_for = draft(customer=Customer(asked["customer"]))
        with self.journal.call("issue", refusals=(InvoiceError,), **asked) as call:
            invoice = issue_invoice(asked_for, account=account, seller=SELLER, request_id=request)
            call.ok(number=invoice.number)
            self._issued.append((account, invoice.number))

    def _void(self, account: str, number: int) -> None:
        asked = {"account": account, "number": number, "reason": self.new_id()}
        refusals = (AlreadyVoided, UnknownInvoice)
        with self.journal.call("void", refusals=refusals, **asked) as call:
            settlement.void(account, label_of(DAY.year, number), asked["reason"])
            call.ok()

    def _read(self, account: str, number: int) -> None:
        asked = {"account": account, "number": number}
        with self.journal.call("read", refusals=(UnknownInvoice,), **asked) as call:
            call.ok(reason=records.find_invoice(account, label_of(DAY.year, number)).void_reason)
