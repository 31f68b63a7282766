"""Pages that take a core for long: PDFs, electronic invoices, pages and forms of many lines."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from subprocess import check_output
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from invoices.document.invoice import Customer, Seller
from invoices.output import helper, pdf
from invoices.output.pdf import render
from invoices.pages import base
from invoices.store.issuing import issue_invoice
from invoices.store.settlement import void
from tests.commands import ROOT
from tests.invoice_factories import DAY, draft, stored_invoices
from tests.invoices.forms import NEW, typed
from tests.invoices.samples import an_invoice
from tests.pages import Page
from tests.production import PRODUCTION
from tests.project.test_helper import end_helper

LABEL = f"{DAY.year}-000001"
PAGE = f"/invoices/{LABEL}/"
PDF = f"/invoices/{LABEL}.pdf"
XML = f"/invoices/{LABEL}.xml"
BOOK = [f"/invoices/customers/{page}" for page in ("", "names/?name=b", f"new/?from={LABEL}")]


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    pdf._kept.cache_clear()
    yield
    pdf._kept.cache_clear()


@pytest.fixture
def issuer(ann: User) -> User:
    """Ann, who is signed in as `client`, with an invoice that has an electronic one."""
    seller = Seller("Ann GmbH", "Hauptstraße 1\n10115 Berlin", "DE136695976", "DE")
    customer = Customer("Bob SA", "1 rue Basse\n75001 Paris", "FR40303265045", "FR")
    issue_invoice(draft(customer, due_date=DAY), account=ann.pk, seller=seller)
    return ann


@pytest.fixture
def typeset(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The invoices that the helper makes a PDF of from now on."""
    made: list[Any] = []
    compute = pdf.run_in_helper

    def noted(function: Any, invoice: Any, account: str) -> Any:
        made.append(invoice)
        return compute(function, invoice, account=account)

    monkeypatch.setattr(pdf, "run_in_helper", noted)
    return made


# Conditional requests -----------------------------------------------------------------------------


def test_a_pdf_is_typeset_once_and_kept_until_the_invoice_is_voided(
    client: Client, issuer: User, typeset: list[Any]
) -> None:
    first = client.get(PDF)
    known = {"If-None-Match": first["ETag"]}

    again = client.get(PDF)
    assert (again.content, again["ETag"]) == (first.content, first["ETag"])
    unchanged = client.get(PDF, headers=known)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged["ETag"] == first["ETag"]
    assert len(typeset) == 1

    void(issuer.pk, LABEL, "wrong")

    after = client.get(PDF, headers=known)
    assert after.status_code == 200
    assert after["ETag"] != first["ETag"]
    assert after.content != first.content


PROGRAM = (
    "import django; django.setup()\n"
    "from invoices.output.pdf import pdf_of\n"
    "from tests.invoices.samples import an_invoice\n"
    "import hashlib; print(hashlib.sha256(pdf_of(an_invoice())).hexdigest(), end='')"
)


def test_a_server_in_production_makes_the_same_pdf() -> None:
    there = PRODUCTION | {"DJANGO_SETTINGS_MODULE": "project.settings"}

    made = check_output([sys.executable, "-c", PROGRAM], cwd=ROOT, env=there, text=True)

    assert made == sha256(render(an_invoice())).hexdigest()


# One at a time ------------------------------------------------------------------------------------


def test_too_many_long_pages_of_an_account_at_once_are_a_429(client: Client, issuer: User) -> None:
    urls = (PDF, XML, PAGE, NEW, f"{NEW}?from={LABEL}", *BOOK)

    # As if others waited; how they wait: test_one_page_at_a_time.py.
    with ExitStack() as waiting:
        for _page in range(1 + base.MOST_WAITING):
            waiting.enter_context(base._gate().place(issuer.pk))
        for refused in (*map(client.get, urls), client.post(NEW, typed())):
            assert refused.status_code == 429
            assert int(refused["Retry-After"]) > 0
            assert "Nothing was stored or sent." in Page(refused).text
        assert client.get("/invoices/").status_code == 200

    assert client.get(PAGE).status_code == 200
    assert len(stored_invoices(issuer.pk)) == 1


def test_if_the_helper_ends_a_page_is_a_503_until_there_is_another(
    client: Client, issuer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_helper()
    monkeypatch.setattr(helper, "CPU_SECONDS", 0.001)

    assert client.get(PDF).status_code == 503

    monkeypatch.undo()
    assert client.get(PDF).status_code == 200
