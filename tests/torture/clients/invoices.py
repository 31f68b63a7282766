"""Clients that issue, void, read and list invoices of a few shared accounts."""

from __future__ import annotations

import random
import time
import uuid
from datetime import date
from decimal import Decimal

from invoices.document.amounts import Line
from invoices.document.invoice import Customer, Draft, Seller, label_of
from invoices.exceptions import AlreadyVoided, InvoiceError, UnknownInvoice
from invoices.store import lists, records, settlement
from invoices.store.issuing import issue_invoice
from tests.torture.history import Journal

DAY = date(2026, 3, 14)
SELLER = Seller("Ann & Söhne")

#: After so many seconds all clients use other accounts, so that lists stay short.
ERA_SECONDS = 60.0
ACCOUNTS = 2


def shared_account(chance: random.Random) -> str:
    """The key of an account that other clients use too."""
    era = int(time.monotonic() / ERA_SECONDS)
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{era} {chance.randrange(ACCOUNTS)}"))


class InvoiceClient:
    """A client. It repeats some of its requests."""

    def __init__(self, journal: Journal, chance: random.Random) -> None:
        self._journal = journal
        self._chance = chance
        self._asked: list[tuple[str, str]] = []
        self._issued: list[tuple[str, int]] = []

    def step(self) -> None:
        """Make one call."""
        what = self._chance.random()
        if self._asked and what < 0.12:
            self._issue(*self._chance.choice(self._asked[-5:]))
        elif what < 0.55 or not self._issued:
            request = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
            self._issue(shared_account(self._chance), request)
        elif what < 0.7:
            self._void(*self._some_invoice())
        elif what < 0.9:
            self._read(*self._some_invoice())
        else:
            self._list(shared_account(self._chance))

    def _some_invoice(self) -> tuple[str, int]:
        account, number = self._chance.choice(self._issued[-6:])
        # Or the next number, which may not exist yet.
        return account, max(1, number + self._chance.choice([-1, 0, 0, 0, 1]))

    def _issue(self, account: str, request: str) -> None:
        self._asked.append((account, request))
        draft = Draft(
            customer=Customer(f"Customer of {request}"),
            lines=(Line("Work", Decimal(1), Decimal(100), Decimal(19)),),
            currency="EUR",
            issued_on=DAY,
        )
        asked = {"account": account, "request": request, "customer": draft.customer.name}
        with self._journal.call("issue", refusals=(InvoiceError,), **asked) as call:
            invoice = issue_invoice(draft, account=account, seller=SELLER, request_id=request)
            call.ok(number=invoice.number)
            self._issued.append((account, invoice.number))

    def _void(self, account: str, number: int) -> None:
        reason = f"because {self._chance.getrandbits(64)}"
        asked = {"account": account, "number": number, "reason": reason}
        refusals = (AlreadyVoided, UnknownInvoice)
        with self._journal.call("void", refusals=refusals, **asked) as call:
            settlement.void(account, label_of(DAY.year, number), reason)
            call.ok()

    def _read(self, account: str, number: int) -> None:
        asked = {"account": account, "number": number}
        with self._journal.call("read", refusals=(UnknownInvoice,), **asked) as call:
            call.ok(reason=records.find_invoice(account, label_of(DAY.year, number)).void_reason)

    def _list(self, account: str) -> None:
        with self._journal.call("list", account=account) as call:
            page = lists.list_invoices(account, DAY.year)
            invoices = [[each.number, each.is_voided] for each in page.invoices]
            call.ok(invoices=invoices, is_all=page.before is None)
