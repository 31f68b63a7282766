"""Pages that take a core for long: PDFs, electronic invoices, pages and forms of many lines."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from subprocess import check_output
from typing import Any

import pytest
from django.test import Client

from accounts.emails.links import mark_confirmed
from accounts.limits import lines
from accounts.models import User
from invoices.document import fonts
from invoices.document.invoice import Customer, Seller
from invoices.output import helper, pdf
from invoices.output.helper import run_in_helper
from invoices.output.pdf import name_of
from invoices.output.sending import send_invoice
from invoices.store.issuing import issue_invoice
from invoices.store.records import find_record
from invoices.store.settlement import void
from tests.commands import ROOT
from tests.fork_server import fork_server
from tests.invoice_factories import DAY, draft, stored_invoices
from tests.invoices.forms import NEW, typed
from tests.invoices.samples import a_voided_invoice, an_invoice
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
    pdf._kept.reset()
    yield
    pdf._kept.reset()


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
    pdf._kept.reset()
    unchanged = client.get(PDF, headers=known)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged["ETag"] == first["ETag"]
    assert len(typeset) == 1

    void(issuer.pk, LABEL, "wrong")

    after = client.get(PDF, headers=known)
    assert after.status_code == 200
    assert after["ETag"] != first["ETag"]
    assert after.content != first.content


def test_the_name_of_a_pdf_depends_on_all_that_it_is_made_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = [
        an_invoice(),
        an_invoice(language="ja"),
        an_invoice(account="another"),
        a_voided_invoice(),
        a_voided_invoice(voided_at=datetime(2026, 12, 24, tzinfo=UTC)),
    ]
    names = {name_of(other) for other in others}
    assert len(names) == len(others)
    assert name_of(an_invoice()) in names

    monkeypatch.setattr(pdf, "_version", lambda: "another")

    assert name_of(an_invoice()) not in names


THERE = PRODUCTION | {"DJANGO_SETTINGS_MODULE": "project.settings"}
PROGRAM = (
    "import django; django.setup()\n"
    "from invoices.output.pdf import name_of\n"
    "from tests.invoices.samples import an_invoice\n"
    "print(name_of(an_invoice()), end='')"
)


def named_by_a_worker() -> str:
    with ProcessPoolExecutor(1, get_context("spawn")) as workers:
        return workers.submit(name_of, an_invoice()).result()


#: The name of a PDF, by each other kind of process that makes PDFs in a test. The hashes of texts
#: differ.
NAMED: dict[str, Callable[[], str]] = {
    "its helper": lambda: run_in_helper(name_of, an_invoice()),
    "a command": lambda: fork_server.run("-c", PROGRAM).stdout,
    "a server in production": lambda: check_output(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=THERE, text=True
    ),
    "a worker": named_by_a_worker,
}


@pytest.mark.parametrize("kind", NAMED)
def test_all_processes_have_the_fonts_of_the_test_and_give_a_pdf_the_same_name(
    kind: str, font_folder: Path
) -> None:
    [thai] = (file for family in fonts.FAMILIES for file in family.files() if "Thai" in file.name)
    for weight in ("Regular", "Bold"):
        (font_folder / f"NotoSansTamil-{weight}.ttf").symlink_to(thai)

    assert NAMED[kind]() == name_of(an_invoice())


def test_kept_pdfs_are_bounded_and_the_last_used_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = pdf._Kept()
    monkeypatch.setattr(pdf, "MOST_BYTES", 10)
    kept.put("a", b"1234")
    kept.put("b", b"1234")
    assert kept.get("a") == b"1234"

    for name, size, stay in (("c", 4, "ac"), ("c", 8, "c"), ("d", 11, "")):
        kept.put(name, b"x" * size)
        assert [item for item in "abcd" if kept.get(item)] == list(stay)


# One at a time ------------------------------------------------------------------------------------


def test_too_many_long_pages_of_an_account_at_once_are_a_429(client: Client, issuer: User) -> None:
    urls = (PDF, XML, PAGE, NEW, f"{NEW}?from={LABEL}", *BOOK)

    # As if others waited; how they wait: tests/accounts/test_lines.py.
    with ExitStack() as waiting:
        for _page in range(1 + lines.MOST_WAITING):
            waiting.enter_context(lines._lines().place(issuer.pk))
        for refused in (*map(client.get, urls), client.post(NEW, typed())):
            assert refused.status_code == 429
            assert int(refused["Retry-After"]) > 0
            assert "Nothing was stored or sent." in Page(refused).text
        assert client.get("/invoices/").status_code == 200

    assert client.get(PAGE).status_code == 200
    assert len(stored_invoices(issuer.pk)) == 1


def test_if_the_helper_ends_a_page_is_a_503_and_a_mail_counts_for_no_limit(
    client: Client, issuer: User, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"mail_account": (1, 3600)}
    mark_confirmed(User.get(issuer.pk))
    issuer = User.get(issuer.pk)
    record = find_record(issuer.pk, LABEL)
    end_helper()
    monkeypatch.setattr(helper, "CPU_SECONDS", 0.001)

    assert client.get(PDF).status_code == 503
    with pytest.raises(helper.HelperEnded):
        send_invoice(issuer, record, "bob@example.org")

    monkeypatch.undo()
    assert client.get(PDF).status_code == 200
    assert send_invoice(issuer, record, "bob@example.org").outcome == "sent"
