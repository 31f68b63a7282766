"""An invoice as a PDF, read back by another library."""

import io
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import segno
from django.core.exceptions import ValidationError
from django.utils import timezone, translation
from hypothesis import given, settings
from pypdf import PdfReader

from invoices.document import fonts
from invoices.document.amounts import TAX_CATEGORIES
from invoices.document.fields import check_printable
from invoices.document.fonts import REPLACEMENT, missing_characters, printable
from invoices.document.invoice import Customer, Invoice, Seller
from invoices.output.contents import contents_of, payment_code
from invoices.output.pdf import render
from tests.commands import ROOT
from tests.fonts import ranges_of
from tests.invoices.conftest import look_for_fonts_again
from tests.invoices.samples import (
    FULL_SELLER,
    TEXTS,
    a_line,
    a_voided_invoice,
    an_invoice,
    invoices,
)
from tests.invoices.test_einvoices import CASES


def read(invoice: Invoice) -> PdfReader:
    return PdfReader(io.BytesIO(render(invoice)))


def pages_of(invoice: Invoice) -> list[str]:
    return [page.extract_text() for page in read(invoice).pages]


def text_of(invoice: Invoice) -> str:
    return "\n".join(pages_of(invoice))


def test_names_of_many_scripts_are_printed() -> None:
    names = [
        *("Ann \U00013000 Lee", "e\u0301 o\u030b か\u3099", "Łódź Őrség Kft.", "Việt ệ"),
        *("Ştefan İnönü ğ ő ș ț", "Ελένη Παπαδοπούλου", "Ґалаґан Їжак Ёлкин ѝ"),
        *("髙﨑 ゆう・㈱ー「」", "𠮷野家 𩸽", "김민준", "王小明 陳美玲", "สมชาย ใจดี"),
    ]
    text = text_of(an_invoice(seller=Seller("Ann", "\n".join(names))))

    assert missing_characters("".join(names)) == "\U00013000"
    # What cannot be printed is replaced; a letter and its accent are printed as one.
    assert [name for name in map(printable, names) if name not in text] == []
    assert f"Ann {REPLACEMENT} Lee\né ő が" in text


def test_scripts_of_joined_letters_have_their_font() -> None:
    # pypdf does not read such text in order.
    names = {
        "संगीता शर्मा": ("ग", "NotoSans-"),
        "شركة النور (2019)": ("ش", "NotoSansArabic-"),
        "علی‌رضا": ("ر", "NotoSansArabic-"),
        "สมชาย": ("ส", "NotoSansThai-"),
    }
    invoice = an_invoice(*(a_line(description=name) for name in names))

    assert missing_characters("".join(names)) == ""
    assert REPLACEMENT not in text_of(invoice)
    for letter, font in names.values():
        assert any(font in item for item in fonts_of(invoice, letter)), letter


def placed(invoice: Invoice) -> list[tuple[str, float, str]]:
    """Each piece of text, how far from the left it begins, and its font."""
    found: list[tuple[str, float, str]] = []

    def look(text: str, cm: list[float], tm: list[float], font: Any, _size: Any) -> None:
        if text.strip():
            found.append((text.strip(), tm[4] * cm[0] + cm[4], str(font["/BaseFont"])))

    for page in read(invoice).pages:
        page.extract_text(visitor_text=look)
    return found


def places_of(invoice: Invoice) -> dict[str, float]:
    return {text: place for text, place, _font in placed(invoice)}


def fonts_of(invoice: Invoice, text: str) -> set[str]:
    """The fonts that an invoice prints pieces with `text` in."""
    return {font for piece, _place, font in placed(invoice) if text in piece}


def test_words_from_right_to_left_are_in_order() -> None:
    places = places_of(an_invoice(seller=Seller("Way 1", "شركة Acme\nWay 2")))

    assert places["Way 2"] == places["Acme"] < places["ش"]


def test_missing_characters_are_named_once_in_order() -> None:
    for text, missing in (
        ("Ann\nLee\r\n\tCo", ""),
        ("Ann 𓀀 and 𓀀𓁐", "𓀀𓁐"),
        ("نام‌های", ""),
        ("\x00a\x07", "\x00\x07"),
        ("a\u202eb\u2028c", "\u202e\u2028"),
        # A mark that the font of its letter does not have.
        ("山\u0e48 ท\u0e48", "\u0e48"),
        ("神\ufe00", ""),
        ("\ud800", "\ud800"),
    ):
        assert missing_characters(text) == missing


def refusal_of(text: str) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        check_printable(text)
    return list(caught.value.messages)


@pytest.mark.parametrize(
    ("text", "shown"), [("𓀀", "\u2068𓀀\u2069"), ("山\u0e31", "◌\u0e31"), ("\u200b", "U+200B")]
)
def test_an_error_shows_the_characters_that_cannot_be_printed(text: str, shown: str) -> None:
    said = f"This character cannot be printed: {shown}. Remove or replace it."
    assert refusal_of(text) == [said]


@pytest.fixture
def other_fonts(font_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Debian's folder of fonts, empty at first, in which a Thai font is looked for as well."""
    thai = fonts._of_noto_core("Thai")
    families = [thai if family.name == thai.name else family for family in fonts.FAMILIES]
    monkeypatch.setattr(fonts, "FAMILIES", tuple(families))
    return font_folder


def test_an_error_names_the_packages_that_would_add_the_characters(other_fonts: Path) -> None:
    assert refusal_of("Ann ไ 😀 ა")[1:] == [
        "The operator of this site can add fonts for them: fonts-noto-core, fonts-noto-color-emoji."
    ]


def test_processes_share_a_folder_of_links_and_refuse_that_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = tmp_path / "font.ttf"

    folder = fonts._folder_of_links([file])

    assert fonts._folder_of_links([file]) == folder != fonts._folder_of_links([tmp_path / "b.ttf"])
    assert (folder / file.name).readlink() == file
    monkeypatch.setattr("os.getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PermissionError):
        fonts._folder_of_links([file])


def test_fonts_of_debian_are_found_and_change_nothing_else(other_fonts: Path) -> None:
    without = render(an_invoice())
    look_for_fonts_again()
    place: Any = find_spec("fontpkg_noto_sans_thai")
    [wheel] = (Path(place.origin).parent / "files").glob("*.ttf")
    for weight in ("Regular", "Bold"):
        (other_fonts / f"NotoSansThai-{weight}.ttf").symlink_to(wheel)

    assert missing_characters("ไทย") == ""
    assert "ไทย" in text_of(an_invoice(seller=Seller("ไทย")))
    assert render(an_invoice()) == without


@settings(max_examples=40)
@given(invoices())
def test_every_invoice_that_can_be_stored_becomes_a_pdf(invoice: Invoice) -> None:
    assert render(invoice).startswith(b"%PDF-")


@given(TEXTS)
def test_every_text_can_be_printed_after_replacements(text: str) -> None:
    assert missing_characters(printable(text)) == ""


def test_a_japanese_name_is_bold_where_a_latin_one_is() -> None:
    invoice = an_invoice(
        a_line(description="細字"), seller=Seller("Bob Ltd", "Way 1"), customer=Customer("太字")
    )

    assert "NotoSansCJKjp-Bold" in "".join(fonts_of(invoice, "太字"))
    assert "NotoSansCJKjp-Regular" in "".join(fonts_of(invoice, "細字"))
    assert fonts_of(invoice, "Bob Ltd") != fonts_of(invoice, "Way 1")


def test_the_table_has_the_characters_of_the_fonts_regular_and_bold() -> None:
    table = json.loads(fonts._CHARACTERS.read_text(encoding="utf-8"))

    assert list(table) == [family.name for family in fonts.FAMILIES]
    for family in fonts.installed():
        for file in family.files():
            assert ranges_of(file) == table[family.name]


def test_the_bytes_are_always_the_same_until_the_invoice_is_voided() -> None:
    voided = a_voided_invoice()
    invoices = (an_invoice(), CASES["discount"], voided, replace(voided, language="ja"))
    usual = [render(invoice) for invoice in invoices]
    assert len({*usual}) == len(invoices)

    def render_again() -> None:
        # Neither the language nor the day of voiding depends on the reader.
        for zone, language in (("UTC", "ja"), ("Pacific/Kiritimati", "en"), ("Pacific/Niue", "de")):
            with timezone.override(ZoneInfo(zone)), translation.override(language):
                assert [render(invoice) for invoice in invoices] == usual

    render_again()


def test_the_bytes_are_the_same_from_threads_at_once(at_once: Callable[..., list[Any]]) -> None:
    invoices = [an_invoice(a_line(description=f"{n} 山田 Ωμέγα"), number=n) for n in range(1, 9)]
    alone = [render(invoice) for invoice in invoices]

    assert at_once(lambda n: render(invoices[n])) == alone


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_pdf_is_for_archives_and_for_screen_readers(language: str) -> None:
    reader = read(an_invoice(language=language))
    root: Any = reader.root_object
    metadata = root["/Metadata"].get_data().decode()

    assert "<pdfaid:part>3</pdfaid:part><pdfaid:conformance>A</pdfaid:conformance>" in metadata
    assert "<pdfuaid:part>1</pdfuaid:part>" in metadata
    assert (root["/Lang"], bool(root["/MarkInfo"]["/Marked"])) == (language, True)
    described: Any = reader.metadata
    assert described.author == "Łódź Őrség Kft."
    assert described.creation_date == datetime(2026, 11, 21, tzinfo=UTC)
    roles = roles_of(root["/StructTreeRoot"])
    # The title; seller and customer; a heading of each column.
    assert (roles["/H1"], roles["/H2"], roles["/TH"]) == (1, 2, 5)


def roles_of(node: Any) -> Counter[str]:
    """How often each role stands in a tree of tags."""
    node = node.get_object()
    if not isinstance(node, dict):
        return Counter()
    kids = node.get("/K", [])
    found = Counter([str(node["/S"])] if "/S" in node else [])
    for kid in kids if isinstance(kids, list) else [kids]:
        found += roles_of(kid)
    return found


def test_a_voided_invoice_is_marked_on_every_page() -> None:
    pages = pages_of(a_voided_invoice(lines=(a_line(),) * 60))

    assert "VOID: this invoice was voided on 2026-11-23." in pages[0]
    assert "Reason: Wrong customer" in pages[0]
    assert len(pages) > 1
    assert all(page.startswith("VOID\n") for page in pages)
    assert "VOID: this invoice was voided.\n" in text_of(a_voided_invoice(voided_at=None))
    # An invoice in a language without a translation is printed in English.
    for language in ("pt-BR", "zh-Hant-TW", "EN"):
        text = text_of(an_invoice(language=language))
        assert "Invoice 2026-000042" in text
        assert "VOID" not in text


FULL_CUSTOMER = Customer("Bob SA", "1 rue Basse", "FR40303265045", "FR", number="K-7")


def test_a_pdf_has_every_field_and_sums_by_category_and_rate() -> None:
    invoice = an_invoice(
        a_line(vat_rate="0", description="Advice", category="reverse_charge"),
        replace(a_line("7.5", "120", "19", "Consulting"), unit="HUR"),
        a_line("-1", "50", "19", "Rebate"),
        a_line("1000", "0.0125", "8.1", "Hosting"),
        seller=FULL_SELLER,
        customer=FULL_CUSTOMER,
        supplied_from=date(2026, 11, 1),
        supplied_to=date(2026, 11, 20),
        due_date=date(2026, 12, 21),
        payment_terms="30 days net.",
        buyer_reference="PO 4711",
        exemption_reason="Article 196",
        note="Thank you.",
    )

    assert text_of(invoice).splitlines() == [
        "Invoice 2026-000042 Date 2026-11-21",
        *("Seller", "Ann GmbH", "Hauptstraße 1", "10115 Berlin", "Germany"),
        *("VAT ID DE136695976", "Tax number 12/345/67890"),
        *("Customer", "Bob SA", "1 rue Basse", "France", "VAT ID FR40303265045"),
        "Customer number K-7",
        *("Period of supply", "2026-11-01 – 2026-11-20", "Due date", "2026-12-21"),
        *("Customer’s reference", "PO 4711"),
        "Description Quantity Unit price, EUR VAT % Net, EUR",
        *("Advice", "Reverse charge", "1 100.00 0 100.00"),
        "Consulting 7.5\N{NO-BREAK SPACE}h 120.00 19 900.00",
        "Rebate −1 50.00 19 −50.00",
        "Hosting 1,000 0.0125 8.1 12.50",
        "Net €962.50",
        "Reverse charge: VAT 0% on €100.00 €0.00",
        "VAT 8.1% on €12.50 €1.01",
        "VAT 19% on €850.00 €161.50",
        "Total €1,125.01",
        "Reverse charge: the customer is liable for the VAT.",
        "Article 196",
        *("Payment", "30 days net.", "Account holder Ann Example"),
        *("IBAN DE89 3704 0044 0532 0130 00", "BIC COBADEFFXXX", "Pay by QR code"),
        *("Note", "Thank you."),
        "Invoice 2026-000042 Page 1 of 1",
    ]


#: Invoices, lines of their texts, and texts that none of their lines has.
SAY: dict[str, tuple[Invoice, set[str], set[str]]] = {
    "the number of a French seller is its SIREN": (
        an_invoice(seller=replace(FULL_SELLER, country="FR", tax_number="732 829 320")),
        {"SIREN/SIRET 732 829 320"},
        {"Tax number"},
    ),
    "a category without VAT has its reason, and an exempt line the typed one": (
        an_invoice(
            *(a_line("1", "1", "0", "x", name) for name in ("intra_community", "export", "exempt")),
            exemption_reason="§ 4 UStG",
        ),
        {
            *("Intra-community supply, exempt from VAT.", "Export, exempt from VAT."),
            "Exempt from VAT: § 4 UStG",
        },
        set(),
    ),
    "prices include tax, and a category that the rate says is not named": (
        an_invoice(a_line(category="standard"), prices_include_tax=True),
        {"Description Quantity Unit price, EUR VAT % With VAT, EUR", "Prices include VAT"},
        {"Net, EUR", "Standard"},
    ),
    "the country that both have is not named": (
        an_invoice(seller=FULL_SELLER, customer=replace(FULL_CUSTOMER, country="DE")),
        set(),
        {"Germany"},
    ),
    "a Japanese invoice marks the reduced rate": (
        an_invoice(
            a_line("2", "500", "8", "緑茶", "reduced"),
            a_line("1", "1000", "10", "急須"),
            seller=Seller("山田商店", "東京都", "T7000012050002", "JP"),
            currency="JPY",
            supplied_from=date(2026, 11, 21),
            language="ja",
        ),
        {
            *("登録番号 T7000012050002", "※ は軽減税率の対象です。", "緑茶 ※ 2 500 8 1,000"),
            *("取引年月日", "2026年11月21日"),
        },
        {"急須 ※"},
    ),
    "a credit note names its invoice and the reason, and nothing is to be paid": (
        an_invoice(
            a_line("-1"),
            seller=FULL_SELLER,
            credits="2026-000041",
            credit_reason="Returned",
            payment_terms="30 days",
        ),
        {
            *("Credit note 2026-000042 Date 2026-11-21", "Reason: Returned", "Total −€119.00"),
            "This credit note cancels invoice 2026-000041.",
        },
        {"IBAN", "30 days"},
    ),
}


@pytest.mark.parametrize(("invoice", "lines", "absent"), SAY.values(), ids=SAY)
def test_a_pdf_says_what_its_invoice_needs(
    invoice: Invoice, lines: set[str], absent: set[str]
) -> None:
    text = text_of(invoice)

    assert lines <= set(text.splitlines())
    assert [item for item in absent if item in text] == []


def test_two_hundred_lines_have_a_number_a_heading_and_sums_carried_over_on_each_page() -> None:
    lines = [a_line(unit_price=f"{n}.01", description=f"Item {n}") for n in range(1, 201)]

    pages = pages_of(an_invoice(*lines))

    assert len(pages) > 3
    total = Decimal(0)
    for number, page in enumerate(pages, 1):
        assert f"Page {number} of {len(pages)}" in page
        assert "Description Quantity" in page
        over = re.findall(r"^(?:Brought|Carried) forward ([\d,.]+)$", page, re.MULTILINE)
        before = [f"{total:,}"] if number > 1 else []
        found = re.findall(r"^Item (\d+) 1 ([\d,.]+) 19 \2$", page, re.MULTILINE)
        total += sum(Decimal(amount) for _item, amount in found)
        assert over == [*before, *([f"{total:,}"] if number < len(pages) else [])]
    assert f"Net €{total:,}" in pages[-1]
    items = re.findall(r"^Item (\d+) ", "\n".join(pages), re.MULTILINE)
    assert items == [str(n) for n in range(1, 201)]


@pytest.mark.parametrize("count", range(33, 41))
def test_every_page_with_a_heading_has_a_line(count: int) -> None:
    for page in pages_of(an_invoice(*[a_line(description="Item")] * count)):
        assert ("Description" in page) == ("Item" in page)


def test_long_descriptions_are_printed_whole_and_within_their_column() -> None:
    long = [
        "word " * 200,
        "x" * 1000,
        "W" * 300,
        "山田商店の請求書、".ljust(1000, "長"),
        "／" * 300,
    ]
    lines = text_of(an_invoice(*(a_line(description=text) for text in long))).splitlines()

    body = [line for line in lines if not line.startswith(("Description", "Invoice"))]
    for text in long:
        for char in set(text) - {" "}:
            assert "".join(body).count(char) >= text.count(char), char
    # About 60 of the narrowest letter fit into the column.
    assert max(map(len, body)) < 150


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_long_words_of_the_document_are_not_broken_next_to_wide_numbers(language: str) -> None:
    lines = [a_line("1000000.5", "99999.99", "0", category=category) for category in TAX_CATEGORIES]
    invoice = an_invoice(*lines, language=language)
    with translation.override(language):
        contents: Any = contents_of(invoice)
    categories = [category for _description, category in contents["descriptions"]]
    said = [*categories, *contents["remarks"], *(label for label, _text in contents["totals"])]

    printed = text_of(invoice).split()

    assert {word for text in said for word in text.split()} <= {*printed}
    assert any(len(word) > 12 for text in categories for word in text.split())


def test_numbers_too_wide_for_the_page_get_smaller() -> None:
    huge = a_line("999999999999.123456", "9999999999.99", description="Gold")

    numbers = "999,999,999,999.123456 9,999,999,999.990 19 9,999,999,999,981,234,560,000.009"
    assert f"Gold {numbers}" in text_of(an_invoice(huge, currency="KWD"))


def test_the_numbers_of_a_column_are_aligned_at_the_decimal_point() -> None:
    quantities = ("1", "2.5", "3.125", "22.5")
    starts = places_of(an_invoice(*(a_line(quantity) for quantity in quantities)))

    assert starts["1"] == pytest.approx(starts["2.5"], abs=0.01)
    assert starts["2.5"] == pytest.approx(starts["3.125"], abs=0.01)
    assert starts["22.5"] < starts["2.5"] - 4


# Payment codes ------------------------------------------------------------------------------------


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
def test_an_invoice_that_cannot_be_paid_by_code_has_none(changes: dict[str, Any]) -> None:
    assert contents_of(an_invoice(**{"seller": FULL_SELLER} | changes))["code"] == ""


def test_the_pdf_has_the_code_with_its_label() -> None:
    for currency, count in (("EUR", 1), ("CHF", 0)):
        reader = read(an_invoice(seller=FULL_SELLER, currency=currency, language="ja"))
        root: Any = reader.root_object

        assert ("QRコードで支払う" in reader.pages[0].extract_text()) == bool(count)
        assert roles_of(root["/StructTreeRoot"])["/Figure"] == count


# Memory -------------------------------------------------------------------------------------------

LARGE = """
import re
from pathlib import Path
import django
django.setup()
from invoices.output.pdf import render
from tests.invoices.samples import a_line, an_invoice

for number in range(1, 6):
    lines = [a_line(description=f"{number} {n} " + "word " * 190) for n in range(200)]
    render(an_invoice(*lines, number=number))
# Not `ru_maxrss`, which begins with that of the process that started this one.
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


@pytest.mark.slow
def test_large_invoices_are_not_kept_in_memory() -> None:
    megabytes = subprocess.check_output([sys.executable, "-c", LARGE], cwd=ROOT, timeout=120)

    # One takes about 220, and all five took 470 while each was remembered.
    assert int(megabytes) < 350
