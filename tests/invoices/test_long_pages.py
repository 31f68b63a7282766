"""Pages that take a core for long: PDFs, electronic invoices, pages and forms of many lines."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.template.base import Template
from django.test import Client

from accounts.emails.confirmation import mark_confirmed
from accounts.limits import lines
from accounts.limits.lines import MOST_WAITING, in_line
from accounts.models import User
from invoices.document.invoice import Customer, Seller
from invoices.output import typesetting
from invoices.output.pdf import render
from invoices.output.sending import send_invoice
from invoices.output.typesetting import name_of, pdf_of
from invoices.store.issuing import issue_invoice
from invoices.store.records import find_record
from invoices.store.settlement import void
from tests.commands import ROOT
from tests.factories import make_user
from tests.invoice_factories import DAY, draft, stored_invoices
from tests.invoices.samples import a_voided_invoice, an_invoice
from tests.pages import Page
from tests.project.test_helper import end_helper
from tests.waiting import wait_until
from web import helper

LABEL = f"{DAY.year}-000001"
PAGE, NEW = f"/invoices/{LABEL}/", "/invoices/new/"
PDF, XML = f"/invoices/{LABEL}.pdf", f"/invoices/{LABEL}.xml"


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    typesetting._kept.reset()
    yield
    typesetting._kept.reset()


@pytest.fixture
def ann(engine: str) -> User:
    """An account with an invoice that has an electronic one."""
    user = make_user()
    seller = Seller("Ann GmbH", "Hauptstraße 1\n10115 Berlin", "DE136695976", "DE")
    customer = Customer("Bob SA", "1 rue Basse\n75001 Paris", "FR40303265045", "FR")
    issue_invoice(
        replace(draft(), customer=customer, due_date=DAY),
        account=user.pk,
        seller=seller,
    )
    return user


def let_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def has_computed() -> bool:
    """Whether the helper was used since `end_helper`."""
    return helper._helper.made() is not None


# Conditional requests -----------------------------------------------------------------------------


def test_a_browser_that_has_the_pdf_gets_a_304_without_typesetting(ann: User) -> None:
    client = let_in(ann)
    first = client.get(PDF)
    assert first.content.startswith(b"%PDF-")
    typesetting._kept.reset()
    end_helper()

    again = client.get(PDF, headers={"If-None-Match": first["ETag"]})

    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert not has_computed()


def test_a_pdf_is_typeset_once_and_then_kept(ann: User) -> None:
    client = let_in(ann)
    first = client.get(PDF)
    assert has_computed()
    end_helper()

    again = client.get(PDF)

    assert (again.content, again["ETag"]) == (first.content, first["ETag"])
    assert not has_computed()


def test_a_voided_invoice_has_another_etag_and_another_pdf(ann: User) -> None:
    client = let_in(ann)
    first = client.get(PDF)

    void(ann.pk, LABEL, "wrong")

    after = client.get(PDF, headers={"If-None-Match": first["ETag"]})
    assert after.status_code == 200
    assert after["ETag"] != first["ETag"]
    assert after.content != first.content


def test_the_name_of_a_pdf_depends_on_all_that_it_is_made_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    voided = a_voided_invoice()
    others = [
        an_invoice(),
        an_invoice(number=43),
        an_invoice(language="ja"),
        an_invoice(account="another"),
        voided,
        replace(voided, voided_at=datetime(2026, 12, 24, tzinfo=UTC)),
        replace(voided, void_reason="another"),
        replace(voided, issued_at=date(2026, 11, 22)),
    ]
    names = {name_of(each) for each in others}
    assert len(names) == len(others)
    assert name_of(an_invoice()) in names

    monkeypatch.setattr(typesetting, "_version", lambda: "another")

    assert name_of(an_invoice()) not in names


def test_all_processes_give_a_pdf_the_same_name() -> None:
    program = (
        "import django; django.setup()\n"
        "from invoices.output.typesetting import name_of\n"
        "from tests.invoices.samples import an_invoice\n"
        "print(name_of(an_invoice()))"
    )
    names = {
        subprocess.check_output([sys.executable, "-c", program], cwd=ROOT) for _time in range(2)
    }

    assert len(names) == 1


def test_kept_pdfs_are_bounded_and_the_last_used_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = typesetting._Kept()
    monkeypatch.setattr(typesetting, "MOST_BYTES", 10)
    kept.put("a", b"1234")
    kept.put("b", b"1234")
    assert kept.get("a") == b"1234"

    kept.put("c", b"1234")
    assert [kept.get(name) for name in "abc"] == [b"1234", None, b"1234"]

    kept.put("c", b"12345678")
    assert [kept.get(name) for name in "abc"] == [None, None, b"12345678"]

    kept.put("d", b"12345678901")
    assert [kept.get(name) for name in "abcd"] == [None] * 4


def test_an_export_displaces_no_kept_pdf() -> None:
    assert pdf_of(an_invoice(), keep=False) == render(an_invoice())

    assert typesetting._kept().get(name_of(an_invoice())) is None


# One at a time ------------------------------------------------------------------------------------


class Held:
    """Pages of `account` that wait, because another one of it is being made."""

    def __init__(self, account: str) -> None:
        self._account = account
        self._ended = threading.Event()

    def __enter__(self) -> Held:
        self._pool = ThreadPoolExecutor(1 + MOST_WAITING)
        for number in range(1 + MOST_WAITING):
            self._pool.submit(self._wait)
            wait_until(lambda number=number: self.length > number)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._pool.shutdown()

    @property
    def length(self) -> int:
        return len(lines._lines()._lines.get(self._account, []))

    def _wait(self) -> None:
        with in_line(self._account):
            self._ended.wait(60)


@pytest.mark.parametrize("url", [PDF, XML, PAGE, NEW, f"{NEW}?from={LABEL}"])
def test_too_many_long_pages_of_an_account_at_once_are_a_429(ann: User, url: str) -> None:
    client, bob = let_in(ann), let_in(make_user())
    with Held(ann.pk):
        refused = client.get(url)
        short = client.get("/invoices/")
        of_another = bob.get(NEW)

    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert "Nothing was stored or sent." in Page(refused).text
    assert (short.status_code, of_another.status_code) == (200, 200)
    assert client.get(url).status_code == 200


def test_a_form_that_is_sent_too_often_at_once_issues_nothing(ann: User) -> None:
    client = let_in(ann)
    form = {
        "customer_name": "Bob",
        "customer_address": "Low Road",
        "currency": "EUR",
        "request_id": Page(client.get(NEW)).value("request_id"),
        "lines-TOTAL_FORMS": "1",
        "lines-INITIAL_FORMS": "0",
        "lines-0-description": "Work",
        "lines-0-quantity": "1",
        "lines-0-unit_price": "5",
        "lines-0-vat_rate": "19",
    }
    with Held(ann.pk):
        assert client.post(NEW, form).status_code == 429
    assert len(stored_invoices(ann.pk)) == 1

    assert client.post(NEW, form).status_code == 302


def test_the_form_is_rendered_before_the_next_one_of_the_account(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    client = let_in(ann)
    render_template = Template.render

    def note(self: Any, context: Any) -> Any:
        if self.name == "invoices/invoice_new.html":
            seen.append(len(lines._lines()._lines.get(ann.pk, [])))
        return render_template(self, context)

    monkeypatch.setattr(Template, "render", note)

    assert client.get(NEW).status_code == 200

    assert seen == [1]


def test_while_pdfs_wait_for_the_helper_other_pages_are_made(ann: User, settings: Any) -> None:
    settings.PAGES_AT_ONCE = 1
    client, bob = let_in(ann), let_in(make_user())
    # One site for both.
    bob.handler = client.handler
    may_go_on = threading.Event()
    working = helper._helper().thread.submit(may_go_on.wait, 60)
    with ThreadPoolExecutor(2) as pool:
        pdfs = [pool.submit(client.get, PDF) for _number in range(2)]
        wait_until(lambda: len(lines._lines()._lines.get(ann.pk, [])) == 2)
        try:
            page = bob.get("/")
        finally:
            may_go_on.set()

        assert page.status_code == 200
        assert [pdf.result().status_code for pdf in pdfs] == [200, 200]
    assert working.result()


def test_a_helper_that_ends_is_a_503_and_the_next_request_gets_the_pdf(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = let_in(ann)
    end_helper()
    monkeypatch.setattr(helper, "CPU_SECONDS", 0.001)

    assert client.get(PDF).status_code == 503

    monkeypatch.undo()
    assert client.get(PDF).status_code == 200


def test_a_mail_whose_pdf_cannot_be_made_counts_for_no_limit(
    ann: User, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"mail_account": (1, 3600)}
    mark_confirmed(User.get(ann.pk))
    ann = User.get(ann.pk)
    record = find_record(ann.pk, LABEL)
    end_helper()
    monkeypatch.setattr(helper, "CPU_SECONDS", 0.001)
    with pytest.raises(helper.HelperEnded):
        send_invoice(ann, record, "bob@example.org")

    monkeypatch.undo()
    assert send_invoice(ann, record, "bob@example.org").outcome == "sent"
