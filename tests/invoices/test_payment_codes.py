"""QR codes of payments: what a banking app reads."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
import segno
from pypdf import PdfReader

from invoices.document.invoice import Invoice
from invoices.output.contents import contents_of, payment_code
from invoices.output.pdf import render
from tests.invoices.samples import FULL_SELLER, a_line, a_voided_invoice, an_invoice
from tests.invoices.test_pdf import roles_of, text_of


def payable(**changes: Any) -> Invoice:
    return an_invoice(**({"seller": FULL_SELLER} | changes))


@pytest.mark.parametrize(
    ("seller", "name"),
    [
        (FULL_SELLER, "Ann Example"),
        (replace(FULL_SELLER, account_holder=""), "Ann GmbH"),
        (replace(FULL_SELLER, account_holder="山" * 71), "山" * 70),
    ],
)
def test_the_code_has_account_holder_or_seller_the_amount_and_the_reference(
    seller: Any, name: str
) -> None:
    iban, is_utf8 = "DE89370400440532013000", "1"
    lines = ["BCD", "002", is_utf8, "SCT", "COBADEFFXXX", name, iban, "EUR119", "", ""]
    payload = "\n".join([*lines, "2026-000042"]).encode()
    expected = segno.make_qr(payload, error="m", boost_error=False)

    assert payment_code(payable(seller=seller)).matrix == expected.matrix


WITHOUT_CODE = {
    "other currency": payable(currency="CHF"),
    "no IBAN": payable(seller=replace(FULL_SELLER, iban="")),
    "more bytes than the code takes": payable(
        seller=replace(FULL_SELLER, account_holder="\U0001f600" * 70)
    ),
    "credit note": payable(credits="2026-000041"),
    "voided": a_voided_invoice(seller=FULL_SELLER),
    "below zero": replace(an_invoice(a_line("-1")), seller=FULL_SELLER),
    "zero": replace(an_invoice(a_line("1", "0")), seller=FULL_SELLER),
    "too much": replace(an_invoice(a_line("1", "1000000000", "0")), seller=FULL_SELLER),
}


@pytest.mark.parametrize("invoice", WITHOUT_CODE.values(), ids=WITHOUT_CODE)
def test_an_invoice_that_cannot_be_paid_so_has_no_code(invoice: Invoice) -> None:
    assert payment_code(invoice) is None
    assert contents_of(invoice)["code"] == ""


@pytest.mark.parametrize(
    ("language", "label"), [("en", "Pay by QR code"), ("ja", "QRコードで支払う")]
)
def test_the_pdf_has_the_code_with_its_label(language: str, label: str) -> None:
    invoice = payable(language=language)
    roles = roles_of(PdfReader(io.BytesIO(render(invoice))).root_object["/StructTreeRoot"])

    assert label in text_of(invoice)
    assert label not in text_of(payable(language=language, currency="CHF"))
    assert roles["/Figure"] == 1
