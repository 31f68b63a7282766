"""QR codes of payments: what a banking app reads."""

from dataclasses import replace
from typing import Any

import pytest
import segno

from invoices.output.contents import contents_of, payment_code
from tests.invoices.samples import FULL_SELLER, a_line, an_invoice
from tests.invoices.test_pdf import read, roles_of


@pytest.mark.parametrize(
    ("holder", "name"), [("Ann Example", "Ann Example"), ("", "Ann GmbH"), ("山" * 71, "山" * 70)]
)
def test_the_code_has_account_holder_or_seller_the_amount_and_the_reference(
    holder: str, name: str
) -> None:
    iban, is_utf8 = "DE89370400440532013000", "1"
    lines = ["BCD", "002", is_utf8, "SCT", "COBADEFFXXX", name, iban, "EUR119", "", ""]
    payload = "\n".join([*lines, "2026-000042"]).encode()
    expected = segno.make_qr(payload, error="m", boost_error=False)

    seller = replace(FULL_SELLER, account_holder=holder)
    assert payment_code(an_invoice(seller=seller)).matrix == expected.matrix


WITHOUT_CODE: dict[str, dict[str, Any]] = {
    "other currency": {"currency": "CHF"},
    "no IBAN": {"seller": replace(FULL_SELLER, iban="")},
    "more bytes than the code takes": {
        "seller": replace(FULL_SELLER, account_holder="\U0001f600" * 70)
    },
    "credit note": {"credits": "2026-000041"},
    "voided": {"status": "voided"},
    "below zero": {"totals": an_invoice(a_line("-1")).totals},
    "zero": {"totals": an_invoice(a_line("1", "0")).totals},
    "too much": {"totals": an_invoice(a_line("1", "1000000000", "0")).totals},
}


@pytest.mark.parametrize("changes", WITHOUT_CODE.values(), ids=WITHOUT_CODE)
def test_an_invoice_that_cannot_be_paid_so_has_no_code(changes: dict[str, Any]) -> None:
    invoice = an_invoice(**{"seller": FULL_SELLER} | changes)

    assert payment_code(invoice) is None
    assert contents_of(invoice)["code"] == ""


def test_the_pdf_has_the_code_with_its_label() -> None:
    for currency, count in (("EUR", 1), ("CHF", 0)):
        reader = read(an_invoice(seller=FULL_SELLER, currency=currency, language="ja"))
        root: Any = reader.root_object

        assert ("QRコードで支払う" in reader.pages[0].extract_text()) == bool(count)
        assert roles_of(root["/StructTreeRoot"])["/Figure"] == count
