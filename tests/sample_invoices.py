"""The invoices of `docs/samples/`, and pictures of them; `make samples` writes both."""

import json
import sys
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from invoices.document.amounts import Line
from invoices.document.invoice import Customer, Draft, Invoice, Seller, draw_up

_ROOT = Path(__file__).resolve().parent.parent
FOLDER = _ROOT / "docs" / "samples"
#: The pictures of the start page, by language.
PICTURES = {"en": "de-mixed-rates", "ja": "jp-reduced-rate"}

DAY = date(2026, 11, 20)
IN_30_DAYS = date(2026, 12, 20)

BERLIN = Seller(
    "Anna Beispiel Software",
    "Hauptstraße 1\n10115 Berlin",
    "DE136695976",
    "DE",
    tax_number="12/345/67890",
    iban="DE89370400440532013000",
    bic="COBADEFFXXX",
    account_holder="Anna Beispiel",
)
PARIS = Seller(
    "Épicerie Dubois SARL",
    "12 rue des Exemples\n75001 Paris",
    "FR40303265045",
    "FR",
    iban="FR1420041010050500013M02606",
    bic="PSSTFRPPPAR",
)
ZURICH = Seller(
    "Muster Gestaltung GmbH",
    "Beispielweg 3\n8001 Zürich",
    "CHE-107.787.577 MWST",
    "CH",
    iban="CH9300762011623852957",
)
LONDON = Seller(
    "Example Instruments Ltd",
    "5 Sample Lane\nLondon EC1A 1AA",
    "GB980780684",
    "GB",
    iban="GB33BUKB20201555555555",
    bic="BUKBGB22",
)
NEW_YORK = Seller(
    "Example Studio LLC", "100 Sample Street\nNew York, NY 10001", "", "US", tax_number="12-3456789"
)
TOKYO = Seller(
    "山田商店",
    "〒100-0001\n東京都千代田区千代田1-1",
    "T5835678256246",
    "JP",
    account_holder="ヤマダシヨウテン",
    bank_name="見本銀行",
    bank_branch="千代田支店",
    account_kind="普通",
    account_number="1234567",
)

LYON = Customer("Boulangerie Martin", "7 place Modèle\n69001 Lyon", "FR83404833048", "FR")
MUNICH = Customer("Muster Handel GmbH", "Ludwigstraße 9\n80539 München", "", "DE", number="K-1042")
VIENNA = Customer("Beispiel Buchhandel", "Musterring 4\n1010 Wien", "ATU13585627", "AT")
GENEVA = Customer("Atelier Exemple SA", "2 rue du Modèle\n1204 Genève", "", "CH")
OSAKA = Customer("株式会社大阪商事", "〒530-0001\n大阪市北区梅田1-1-1", "", "JP", number="C-88")
BOSTON = Customer("Sample Books Inc.", "20 Example Avenue\nBoston, MA 02108", "", "US")


def _line(
    description: str, quantity: str, unit_price: str, vat_rate: str, category: str = ""
) -> Line:
    return Line(description, Decimal(quantity), Decimal(unit_price), Decimal(vat_rate), category)


def _issued(
    seller: Seller,
    customer: Customer,
    number: int,
    *lines: Line,
    language: str = "en",
    **values: Any,
) -> Invoice:
    defaults = {"currency": "EUR", "due_date": IN_30_DAYS, "supplied_from": DAY}
    draft = Draft(customer=customer, lines=lines, **defaults | values)
    invoice = draw_up(draft, "sample", seller, DAY, f"sample-{number}", language)
    return replace(invoice, number=number)


def _credited(invoice: Invoice, number: int, reason: str) -> Invoice:
    lines = [replace(line, quantity=-line.quantity) for line in invoice.lines]
    values = {"due_date": None, "credits": invoice.label, "credit_reason": reason}
    return _issued(
        invoice.seller,
        invoice.customer,
        number,
        *lines,
        prices_include_tax=invoice.prices_include_tax,
        **values,
    )


_GROCERIES = _issued(
    PARIS,
    LYON,
    204,
    _line("Café en grains, 1 kg", "4", "18.90", "5.5", "reduced"),
    _line("Thé vert, 250 g", "6", "7.45", "5.5", "reduced"),
    _line("Théière en fonte", "1", "49.00", "20"),
    prices_include_tax=True,
    payment_terms="Payable within 30 days.\nLate payment: 12% a year, and €40 for collection.",
)

#: By the names of their files.
SAMPLES = {
    "de-mixed-rates": _issued(
        BERLIN,
        MUNICH,
        42,
        _line("Software development, November", "32.5", "95", "19"),
        _line("Handbook, printed", "3", "24.90", "7", "reduced"),
        _line("Discount for the first order", "1", "-150", "19"),
        supplied_from=date(2026, 11, 2),
        supplied_to=date(2026, 11, 18),
        payment_terms="Payable within 30 days without deduction.",
        buyer_reference="PO 4711",
        note="Thank you for your order.",
    ),
    "de-reverse-charge": _issued(
        BERLIN,
        LYON,
        43,
        _line("Remote training, one day", "1", "1200", "0", "reverse_charge"),
        payment_terms="Payable within 30 days.",
    ),
    "de-exempt": _issued(
        replace(BERLIN, vat_id=""),
        MUNICH,
        44,
        _line("Proofreading, per page", "118", "4.25", "0", "exempt"),
        exemption_reason="small business (§ 19 UStG)",
    ),
    "de-intra-community": _issued(
        BERLIN,
        VIENNA,
        45,
        *(
            _line(
                f"Volume {n} of the collected works",
                str(1 + n % 3),
                f"{18 + n % 7}.90",
                "0",
                "intra_community",
            )
            for n in range(1, 29)
        ),
        buyer_reference="BB-2026/118",
    ),
    "fr-prices-include-tax": _GROCERIES,
    "fr-credit-note": _credited(_GROCERIES, 205, "The delivery was damaged and came back."),
    "ch-mixed-rates": _issued(
        ZURICH,
        GENEVA,
        17,
        _line("Design of a catalog", "1", "3400", "8.1"),
        _line("Catalogs, printed", "250", "3.80", "2.6", "reduced"),
        currency="CHF",
        payment_terms="30 days net.",
    ),
    "gb-export": _issued(
        LONDON,
        OSAKA,
        301,
        _line("Pressure gauge PG-20", "12", "84.50", "0", "export"),
        _line("Freight to Osaka", "1", "160", "0", "export"),
        currency="GBP",
        payment_terms="Payment before the goods leave our warehouse.",
    ),
    "us-one-rate": _issued(
        NEW_YORK,
        BOSTON,
        8,
        _line("Illustration for a book cover", "1", "850", "8.875"),
        currency="USD",
        payment_terms="Net 30.",
        note="Please write the number of the invoice on your check.",
    ),
    "jp-reduced-rate": _issued(
        TOKYO,
        OSAKA,
        99,
        _line("煎茶 100g", "24", "980", "8", "reduced"),
        _line("ほうじ茶 100g", "10", "640", "8", "reduced"),
        _line("急須（常滑焼）", "2", "5400", "10"),
        language="ja",
        currency="JPY",
        supplied_from=date(2026, 11, 18),
        payment_terms="月末締め、翌月末払い。",
    ),
}


def path_of(name: str) -> Path:
    """The committed file of a sample."""
    return FOLDER / f"{name}.pdf"


def picture_path(language: str) -> Path:
    """The committed picture of the start page."""
    return _ROOT / "invoices" / "static" / "invoices" / f"sample-{language}.png"


def picture_of(invoice: Invoice) -> bytes:
    """The first page of the PDF of `invoice` as a PNG, 827 × 1169 pixels."""
    import typst
    from django.utils import translation

    from invoices.output import pdf
    from invoices.output.contents import contents_of

    with translation.override(invoice.language):
        contents = contents_of(invoice) | {"xml": None}
    picture = typst.compile(
        pdf._TEMPLATE,
        font_paths=pdf._fonts(),
        sys_inputs={"invoice": json.dumps(contents)},
        format="png",
        ppi=100,
    )
    assert isinstance(picture, bytes), "The sample has one page."
    return picture


def main() -> None:
    """Write all samples and pictures."""
    import django

    django.setup()
    from invoices.output.pdf import render

    files = {path_of(name): render(invoice) for name, invoice in SAMPLES.items()}
    files |= {
        picture_path(language): picture_of(SAMPLES[name]) for language, name in PICTURES.items()
    }
    for path, content in files.items():
        path.write_bytes(content)
        print(path, file=sys.stderr)


if __name__ == "__main__":
    main()
