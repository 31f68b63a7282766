"""Makes the accounts, invoices, sessions and forms that the benchmarks of pages send.

    python -m benchmarks.prepared FOLDER

The settings decide where: the site's, or those of `benchmarks.on_postgres`.

Forms are made as the site's pages would show them, so that only sending them is measured: request
ids are signed with the site's key, and a CSRF token only has to equal its cookie.
"""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import django

ACCOUNTS = 64
SESSIONS = 20
#: Of each account with a session: more than a page of the list.
INVOICES = 60
#: Of one more account: as many lines as an invoice may have, and more PDFs than a process keeps.
LONG_INVOICES = 40
LONG = 200
#: More than a run of a few seconds sends.
FORMS = 6000
TOKEN = "t" * 32
PASSWORD = "correct horse battery staple"  # noqa: S105 - of accounts that exist for minutes


def main() -> None:
    """Write one file for each kind of request."""
    django.setup()
    logging.getLogger("project.access").disabled = True
    folder = Path(sys.argv[1])
    names = [f"bench{number}" for number in range(ACCOUNTS)]
    from django.contrib.auth.hashers import make_password

    # The same for all: a hash is slow on purpose.
    password_hash = make_password(PASSWORD)
    for name in names:
        _store().register(name, f"{name}@example.org", password_hash)
    sessions = [_session(name) for name in names[:SESSIONS]]
    for name in names[:SESSIONS]:
        _issue_invoices(name)
    attacker = names[SESSIONS]
    _issue_invoices(attacker, LONG_INVOICES, LONG)
    session = _session(attacker)
    _write(folder / "long-pdfs", _long_pdfs(session))
    _write(folder / "long-forms", [_issue(session, LONG, quantity="none")] * 2)
    _write(folder / "anonymous", [("", "")] * SESSIONS)
    _write(folder / "signed-in", [(_cookies(session), "") for session in sessions])
    _write(folder / "sign-in", (_sign_in(names[number % ACCOUNTS]) for number in range(ACCOUNTS)))
    _write(folder / "sign-up", (_sign_up() for _number in range(FORMS)))
    _write(folder / "issue", (_issue(sessions[number % SESSIONS]) for number in range(FORMS)))


class _OnDynamo:
    @staticmethod
    def register(name: str, email: str, password_hash: str) -> None:
        from accounts.services import register

        register(username=name, email=email, password_hash=password_hash)

    @staticmethod
    def find(name: str) -> Any:
        from accounts.models import User

        return User.named(name)

    @staticmethod
    def issue(draft: Any, user: Any, seller: Any) -> None:
        from invoices.store.issuing import issue_invoice

        issue_invoice(draft, account=user.pk, seller=seller)


class _OnPostgres:
    @staticmethod
    def register(name: str, email: str, password_hash: str) -> None:
        from benchmarks.on_postgres.models import User

        User.objects.create(username=name, email=email, password=password_hash)

    @staticmethod
    def find(name: str) -> Any:
        from benchmarks.on_postgres.models import User

        return User.objects.get(username=name)

    @staticmethod
    def issue(draft: Any, user: Any, seller: Any) -> None:
        from django.utils.timezone import localdate

        from benchmarks.on_postgres.models import issue

        issue(draft, user, seller, localdate(), str(uuid.uuid4()))


def _store() -> type[_OnDynamo] | type[_OnPostgres]:
    from django.conf import settings

    return _OnDynamo if settings.AUTH_USER_MODEL == "accounts.User" else _OnPostgres


def _issue_invoices(name: str, invoices: int = INVOICES, repeated: int = 1) -> None:
    from invoices.document.amounts import Line
    from invoices.document.invoice import Customer, Draft, Seller

    user = _store().find(name)
    three = (
        Line("Work", Decimal(8), Decimal("95.50"), Decimal(19)),
        Line("Travel", Decimal(120), Decimal("0.42"), Decimal(19)),
        Line("A book", Decimal(1), Decimal("24.90"), Decimal(7)),
    )
    lines = (three * repeated)[: max(len(three), repeated)]
    for number in range(invoices):
        customer = Customer(f"Customer {number}", "1 Road\nTown")
        _store().issue(Draft(customer, lines, "EUR"), user, Seller(name))


def _write(file: Path, requests: Iterable[tuple[str, str]]) -> None:
    file.write_text("".join(f"{cookie}\t{body}\n" for cookie, body in requests))


def _session(name: str) -> str:
    from django.conf import settings
    from django.test import Client

    client = Client()
    # Not by the form: on a busy machine sixteen passwords to check take a minute.
    client.force_login(_store().find(name))
    # A page sets the other cookies that a browser has after a sign-in.
    client.get("/accounts/profile/", secure=True, headers={"host": settings.ALLOWED_HOSTS[0]})
    token = settings.CSRF_COOKIE_NAME
    return "; ".join(
        f"{key}={cooky.value}" for key, cooky in client.cookies.items() if key != token
    )


def _cookies(session: str) -> str:
    """The cookies of a browser that was shown a form before."""
    from django.conf import settings

    return "; ".join(filter(None, [f"{settings.CSRF_COOKIE_NAME}={TOKEN}", session]))


def _form(session: str, **values: str) -> tuple[str, str]:
    return _cookies(session), urlencode(values | {"csrfmiddlewaretoken": TOKEN})


def _sign_in(name: str) -> tuple[str, str]:
    return _form("", username=name, password=PASSWORD)


def _sign_up() -> tuple[str, str]:
    from accounts.forms import SignUpForm

    name = f"new{uuid.uuid4().hex[:16]}"
    return _form(
        "",
        username=name,
        email=f"{name}@example.org",
        full_name="A Visitor",
        phone_number="",
        password1=PASSWORD,
        password2=PASSWORD,
        request_id=SignUpForm.new_request_id(),
    )


def _long_pdfs(session: str) -> Iterable[tuple[str, str]]:
    year = datetime.now(UTC).year
    for number in range(1, LONG_INVOICES + 1):
        yield _cookies(session), f"\t/invoices/{year}-{number:06}.pdf"


def _issue(session: str, lines: int = 1, quantity: str = "8") -> tuple[str, str]:
    from invoices.pages.forms import InvoiceForm

    line = {"description": "Work", "quantity": quantity, "unit_price": "95.50", "vat_rate": "19"}
    counts = {"lines-TOTAL_FORMS": str(lines), "lines-INITIAL_FORMS": "0"}
    typed = {
        f"lines-{number}-{name}": value for number in range(lines) for name, value in line.items()
    }
    customer = {"customer_name": "A customer", "customer_address": "", "currency": "EUR"}
    return _form(session, **counts, **typed, **customer, request_id=InvoiceForm.new_request_id())


if __name__ == "__main__":
    main()
