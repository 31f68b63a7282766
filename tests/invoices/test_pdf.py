"""An invoice as a PDF, read back by another library."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader

from invoices.documents import Invoice, Party
from invoices.fonts import REPLACEMENT, missing_characters, printable
from invoices.pdf import render
from invoices.typesetting import BOTTOM, PAGE_HEIGHT, Flow, Style
from tests.commands import ROOT
from tests.invoices.samples import TEXTS, a_line, a_voided_invoice, an_invoice

BODY = Style(9, 13)


def pages_of(invoice: Invoice) -> list[str]:
    reader = PdfReader(io.BytesIO(render(invoice)))
    return [page.extract_text() for page in reader.pages]


def text_of(invoice: Invoice) -> str:
    return "\n".join(pages_of(invoice))


def test_an_invoice_says_who_sold_what_to_whom_for_how_much() -> None:
    invoice = an_invoice(
        a_line("7.5", "120", "19", "Consulting"),
        a_line("3", "24.9", "7", "Book"),
        a_line("-1", "50", "19", "Rebate"),
        a_line("1000", "0.0125", "8.1", "Hosting"),
        note="Payable within 30 days.",
    )

    assert text_of(invoice).splitlines() == [
        "Invoice 2026-000042",
        "Date 2026-11-21",
        "Seller Customer",
        "Łódź Őrség Kft. 株式会社山田商店",
        "Ulica Żółta 5 東京都千代田区１－１",
        "90-001 Łódź",
        "VAT ID PL1234567890",
        "Description Quantity Unit price, EUR VAT % Net, EUR",
        "Consulting 7.5 120.00 19 900.00",
        "Book 3 24.90 7 74.70",
        "Rebate −1 50.00 19 −50.00",
        "Hosting 1,000 0.0125 8.1 12.50",
        "Net €937.20",
        "VAT 7% on €74.70 €5.23",
        "VAT 8.1% on €12.50 €1.01",
        "VAT 19% on €850.00 €161.50",
        "Total €1,104.94",
        "Note",
        "Payable within 30 days.",
        "Invoice 2026-000042 Page 1 of 1",
    ]


@pytest.mark.parametrize(
    ("currency", "total"), [("JPY", "¥119"), ("KWD", "KWD 119.000"), ("EUR", "€119.00")]
)
def test_amounts_follow_their_currency(currency: str, total: str) -> None:
    assert f"Total {total}" in text_of(an_invoice(currency=currency))


@pytest.mark.parametrize(
    "name",
    [
        "Ştefan İnönü ğ ő ș ț",
        "Ελένη Παπαδοπούλου",
        "Ґалаґан Їжак Ёлкин ѝ",
        "髙﨑 ゆう・㈱ー「」",
        "Việt ệ",
    ],
)
def test_names_of_many_scripts_are_printed(name: str) -> None:
    assert missing_characters(name) == ""
    assert name in text_of(an_invoice(seller=Party(name)))


def test_a_letter_and_its_accent_are_printed_as_one() -> None:
    assert "é ő が" in text_of(an_invoice(seller=Party("e\u0301 o\u030b か\u3099")))


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Ann\nLee\r\n\tCo", ""),
        ("Ann 😀 and 😀👍", "😀👍"),
        ("عرب", "عرب"),
        ("שלום", "שלום"),
        ("\x00a\x07", "\x00\x07"),
        ("a\u202eb\u2028c", "\u202e\u2028"),
        ("한글", "한글"),
        ("ไทย", "ไทย"),
        ("\ud800", "\ud800"),
    ],
)
def test_what_cannot_be_printed_is_named_once_in_order(text: str, missing: str) -> None:
    assert missing_characters(text) == missing


@given(TEXTS)
def test_every_text_is_printed_or_replaced_and_never_breaks_the_page(text: str) -> None:
    invoice = an_invoice(
        a_line(description=text or "x"), customer=Party(text, text, text), note=text
    )

    assert render(invoice).startswith(b"%PDF-")
    assert missing_characters(printable(text)) == ""


def test_what_cannot_be_printed_leaves_a_sign() -> None:
    assert f"Ann {REPLACEMENT} Lee" in text_of(an_invoice(seller=Party("Ann \U0001f600 Lee")))


def test_every_font_is_embedded() -> None:
    reader = PdfReader(io.BytesIO(render(a_voided_invoice())))

    fonts = {
        str(font["/BaseFont"]).partition("+")[2]: font["/FontDescriptor"]
        for page in reader.pages
        for font in (each.get_object() for each in page["/Resources"]["/Font"].values())  # type: ignore[index]
    }
    assert set(fonts) == {"DejaVuSans", "DejaVuSans-Bold", "IPAexGothic"}
    assert all("/FontFile2" in descriptor for descriptor in fonts.values())


def test_the_bytes_are_the_same_each_time_and_others_once_voided() -> None:
    assert render(an_invoice()) == render(an_invoice())
    assert render(a_voided_invoice()) == render(a_voided_invoice())
    assert render(an_invoice()) != render(a_voided_invoice())


def test_the_bytes_are_the_same_from_threads_at_once(
    at_once: Callable[..., list[Any]],
) -> None:
    invoices = [an_invoice(a_line(description=f"{n} 山田 Ωμέγα"), number=n) for n in range(1, 9)]
    alone = [render(invoice) for invoice in invoices]

    assert at_once(lambda n: render(invoices[n])) == alone


def test_the_title_is_the_number() -> None:
    metadata = PdfReader(io.BytesIO(render(an_invoice()))).metadata

    assert metadata is not None
    assert metadata.title == "2026-000042"
    assert metadata.author == "Łódź Őrség Kft."


def test_the_day_of_voiding_is_no_visitors_one() -> None:
    invoice = a_voided_invoice()
    usual = render(invoice)

    for zone in ("Pacific/Kiritimati", "Pacific/Niue"):
        with timezone.override(ZoneInfo(zone)):
            assert render(invoice) == usual


def test_a_voided_invoice_says_so_on_every_page() -> None:
    lines = [a_line(description=f"Item {n}") for n in range(200)]
    pages = pages_of(a_voided_invoice(lines=tuple(lines)))

    assert "VOID: this invoice was voided on 2026-11-23." in pages[0]
    assert "Reason: Wrong customer" in pages[0]
    assert len(pages) > 1
    assert all(page.startswith("VOID\n") for page in pages)
    assert "VOID" not in text_of(an_invoice())


def test_two_hundred_lines_have_page_numbers_and_a_heading_on_each_page() -> None:
    pages = pages_of(an_invoice(*(a_line(description=f"Item {n}") for n in range(1, 201))))

    assert len(pages) > 3
    for number, page in enumerate(pages, 1):
        assert f"Page {number} of {len(pages)}" in page
        if "Item" in page:
            assert "Description Quantity" in page
    text = "\n".join(pages)
    assert [n for n in range(1, 201) if f"Item {n} 1 100.00 19 100.00\n" not in text] == []


@pytest.mark.parametrize("count", range(33, 41))
def test_no_page_has_a_heading_without_a_line(count: int) -> None:
    for page in pages_of(an_invoice(*[a_line(description="Item")] * count)):
        assert ("Description" in page) == ("Item" in page)


@pytest.mark.parametrize(
    "description", ["word " * 200, "x" * 1000, "山田商店の請求書、".ljust(1000, "長")]
)
def test_a_description_of_a_thousand_characters_is_printed_whole(description: str) -> None:
    pages = pages_of(an_invoice(*[a_line(description=description)] * 3))

    body = "".join(
        line
        for page in pages
        for line in page.splitlines()
        if not line.startswith(("Description", "Invoice"))
    )
    letters = body.replace(" ", "")
    for char in set(description.replace(" ", "")):
        assert letters.count(char) >= 3 * description.count(char)


@given(TEXTS, st.floats(20, 400))
def test_lines_are_no_wider_than_asked_and_lose_nothing(text: str, width: float) -> None:
    lines = BODY.wrapped(text, width)

    for line in lines:
        assert BODY.width(line) <= width or len(line) <= 2
    kept = "".join("".join(lines).split())
    assert kept == "".join("".join(map(printable, text.strip().splitlines())).split())


def test_japanese_is_broken_between_characters_but_never_before_a_full_stop() -> None:
    width = 9.0 * 5 + 0.1

    assert BODY.wrapped("あいうえお。かきくけこ", width) == ["あいうえ", "お。かきく", "けこ"]
    assert BODY.wrapped("あいうえ「かきくけこ", width) == ["あいうえ", "「かきくけ", "こ"]


def test_numbers_too_wide_for_the_page_get_smaller_and_stay_whole() -> None:
    huge = a_line("999999999999.123456", "9999999999.99", description="Gold")

    text = text_of(an_invoice(huge, currency="KWD"))

    assert (
        "Gold 999,999,999,999.123456 9,999,999,999.990 19 9,999,999,999,981,234,560,000.009" in text
    )


def test_no_line_is_written_below_the_page() -> None:
    flow = Flow()
    for _ in range(500):
        flow.write(56, "x", BODY)
        flow.down(13, keep=10_000)

    assert len(flow.pages) > 1
    assert all(BOTTOM <= mark.y <= PAGE_HEIGHT for page in flow.pages for mark in page)


FORKING_UNDER_LOCK = """
import os, signal, sys
from invoices import fonts, typesetting

with {lock}:  # as where another thread holds it at that moment
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            pages = [[typesetting.Text(100, 100, "Work", typesetting.Style(9, 13))]]
            pdf = typesetting.paint(pages, title="", author="", language="en")
        finally:
            os._exit(0 if pdf.startswith(b"%PDF-") else 3)
    _pid, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("lock", ["typesetting._painting", "fonts._loading"])
def test_a_fork_while_a_thread_paints_does_not_block_the_child(lock: str) -> None:
    script = FORKING_UNDER_LOCK.format(lock=lock)

    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False, timeout=120)

    assert ended.returncode == 0
