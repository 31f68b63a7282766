"""Pages that take a core for long: PDFs, electronic invoices, pages and forms of many lines."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.template.base import Template
from django.test import Client

from accounts.emails.links import mark_confirmed
from accounts.limits import lines
from accounts.limits.lines import MOST_WAITING, in_line
from accounts.models import User
from invoices.document.invoice import Customer, Seller
from invoices.output import pdf
from invoices.output.pdf import name_of, pdf_of, render
from invoices.output.sending import send_invoice
from invoices.store.issuing import issue_invoice
from invoices.store.records import find_record
from invoices.store.settlement import void
from tests.factories import make_user
from tests.fork_server import fork_server
from tests.invoice_factories import DAY, draft, stored_invoices
from tests.invoices.forms import NEW, typed
from tests.invoices.samples import a_voided_invoice, an_invoice
from tests.pages import Page, let_in
from tests.project.test_helper import end_helper
from tests.waiting import wait_until
from web import helper

LABEL = f"{DAY.year}-000001"
PAGE = f"/invoices/{LABEL}/"
PDF, XML = f"/invoices/{LABEL}.pdf", f"/invoices/{LABEL}.xml"


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
    compute = pdf.computed

    def noted(function: Any, invoice: Any) -> Any:
        made.append(invoice)
        return compute(function, invoice)

    monkeypatch.setattr(pdf, "computed", noted)
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
        an_invoice(number=43),
        an_invoice(language="ja"),
        an_invoice(account="another"),
        a_voided_invoice(),
        a_voided_invoice(voided_at=datetime(2026, 12, 24, tzinfo=UTC)),
        a_voided_invoice(void_reason="another"),
        a_voided_invoice(issued_at=date(2026, 11, 22)),
    ]
    names = {name_of(each) for each in others}
    assert len(names) == len(others)
    assert name_of(an_invoice()) in names

    monkeypatch.setattr(pdf, "_version", lambda: "another")

    assert name_of(an_invoice()) not in names


def test_all_processes_give_a_pdf_the_same_name() -> None:
    program = (
        "import django; django.setup()\n"
        "from invoices.output.pdf import name_of\n"
        "from tests.invoices.samples import an_invoice\n"
        "print(name_of(an_invoice()))"
    )
    # Another interpreter, which draws other hashes.
    environment = os.environ | {"LANG": "C.UTF-8", "OF": "a test"}
    named = fork_server.run("-c", program, env=environment).stdout
    # Another test's settings may have been in force when this process looked it up.
    pdf._version.cache_clear()

    assert named.strip() == name_of(an_invoice())
    assert len(named.strip()) == 64


def test_kept_pdfs_are_bounded_and_the_last_used_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = pdf._Kept()
    monkeypatch.setattr(pdf, "MOST_BYTES", 10)
    kept.put("a", b"1234")
    kept.put("b", b"1234")
    assert kept.get("a") == b"1234"

    for name, content, stay in (
        ("c", b"1234", "ac"),
        ("c", b"12345678", "c"),
        ("d", b"12345678901", ""),
    ):
        kept.put(name, content)
        assert [each for each in "abcd" if kept.get(each)] == list(stay)
    # An export displaces none.
    assert pdf_of(an_invoice(), keep=False) == render(an_invoice())
    assert pdf._kept().get(name_of(an_invoice())) is None


# One at a time ------------------------------------------------------------------------------------


def in_line_of(user: User) -> int:
    """How many pages of an account are made or wait."""
    return len(lines._lines()._lines.get(user.pk, []))


def test_too_many_long_pages_of_an_account_at_once_are_a_429(client: Client, issuer: User) -> None:
    bob = let_in(make_user())
    urls, form = (PDF, XML, PAGE, NEW, f"{NEW}?from={LABEL}"), typed()
    ended = threading.Event()

    def wait() -> None:
        with in_line(issuer.pk):
            ended.wait(60)

    with ThreadPoolExecutor(1 + MOST_WAITING) as pool:
        for number in range(1 + MOST_WAITING):
            pool.submit(wait)
            wait_until(lambda number=number: in_line_of(issuer) > number)
        try:
            refused = [*map(client.get, urls), client.post(NEW, form)]
            short = client.get("/invoices/")
            of_another = bob.get(NEW)
        finally:
            ended.set()

    for each in refused:
        assert each.status_code == 429
        assert int(each["Retry-After"]) > 0
        assert "Nothing was stored or sent." in Page(each).text
    assert (short.status_code, of_another.status_code) == (200, 200)
    assert len(stored_invoices(issuer.pk)) == 1
    assert {client.get(url).status_code for url in urls} == {200}
    assert client.post(NEW, form).status_code == 302


def test_the_form_is_rendered_before_the_next_one_of_the_account(
    client: Client, issuer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    render_template = Template.render

    def note(self: Any, context: Any) -> Any:
        if self.name == "invoices/invoice_new.html":
            seen.append(in_line_of(issuer))
        return render_template(self, context)

    monkeypatch.setattr(Template, "render", note)

    assert client.get(NEW).status_code == 200

    assert seen == [1]


def test_while_pdfs_wait_for_the_helper_other_pages_are_made(
    client: Client, issuer: User, settings: Any
) -> None:
    settings.PAGES_AT_ONCE = 1
    bob = let_in(make_user())
    # One site for both.
    bob.handler = client.handler
    may_go_on = threading.Event()
    working = helper._helper().thread.submit(may_go_on.wait, 60)
    with ThreadPoolExecutor(2) as pool:
        pdfs = [pool.submit(client.get, PDF) for _number in range(2)]
        wait_until(lambda: in_line_of(issuer) == 2)
        try:
            assert bob.get("/").status_code == 200
        finally:
            may_go_on.set()

        assert [pdf.result().status_code for pdf in pdfs] == [200, 200]
    assert working.result()


def test_while_the_helper_ends_a_page_is_a_503_and_a_mail_counts_for_no_limit(
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
