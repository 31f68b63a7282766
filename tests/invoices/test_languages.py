"""A document has the language of its customer or of the page. Stored values have none."""

import io
import re
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.template.loader import render_to_string
from django.test import Client
from django.utils import translation
from pypdf import PdfReader

from accounts.models import User
from accounts.services import edit_profile
from invoices.document.fonts import printable
from invoices.document.money import bare_price, readable_amount
from invoices.document.places import currency_choices
from invoices.output.contents import contents_of
from invoices.output.files import YEAR_FILES
from invoices.store.lists import all_invoices
from invoices.store.records import find_invoice
from tests import catalogue
from tests.commands import run
from tests.factories import make_user
from tests.invoice_factories import DAY, issued, sell_as, stored_invoices
from tests.invoices.forms import NEW, typed
from tests.invoices.samples import a_line, an_invoice, record_of
from tests.pages import Page, form_values
from tests.sample_invoices import SAMPLES

#: Texts that are the same in several languages.
SAME = {"Bank", "IBAN", "BIC", "Date", "Description", "h", "kg", "m"}
#: The payment terms of a profile.
TERMS = "Zahlbar in 14 Tagen."


@pytest.mark.parametrize("path", catalogue.DOCUMENTS, ids=lambda path: path.parts[-3])
def test_a_catalogue_of_documents_has_texts_of_the_sources_with_their_placeholders(
    path: Path,
) -> None:
    found = catalogue.read(path)
    all_texts = catalogue.read(catalogue.CATALOGUES[0])
    german, french = ({item.id for item in catalogue.read(one)} for one in catalogue.DOCUMENTS)

    for entry in filter(lambda message: message.id, found):
        assert all_texts.get(entry.id, entry.context) is not None, entry.id
        assert catalogue.placeholders(str(entry.id)) == catalogue.placeholders(str(entry.string))
        assert entry.string
    assert german == french
    committed = path.with_suffix(".mo").read_bytes()
    assert catalogue.messages(committed) == catalogue.messages(catalogue.compiled(found))


def _labels(name: str, language: str) -> list[str]:
    """The texts of a sample that the template prints and nobody typed."""
    with translation.override(language):
        contents: dict[str, Any] = contents_of(SAMPLES[name])
    return [
        *contents["labels"].values(),
        contents["title"],
        *(label for label, _text in contents["details"] + contents["bank"] + contents["totals"]),
        *(column["title"] for column in contents["columns"]),
        *(text for _description, text in contents["descriptions"] if text),
        *contents["remarks"],
        *([contents["credited"]["banner"]] if contents["credited"] else []),
    ]


@pytest.mark.parametrize("language", ["de", "fr"])
@pytest.mark.parametrize("name", SAMPLES)
def test_no_part_of_a_document_remains_english(name: str, language: str) -> None:
    both = zip(_labels(name, language), _labels(name, "en"), strict=True)

    assert {here for here, there in both if here == there} - SAME == set()


@pytest.mark.parametrize(
    ("language", "amount", "price"),
    [
        *((other, "−€1,234.50", "1,234,567.50") for other in ("en", "ja", "es", "xx", None)),
        ("de", "−1.234,50 €", "1.234.567,50"),
        ("fr", "−1 234,50 €", "1 234 567,50"),
    ],
)
def test_numbers_are_written_as_in_the_language(
    language: str | None, amount: str, price: str
) -> None:
    with translation.override(language):
        written = readable_amount(-123450, "EUR"), bare_price(Decimal("1234567.5"), "EUR")

    invisible = {0x200E: None, 0x2060: None, 0xA0: " "}
    assert [text.translate(invisible) for text in written] == [amount, price]


def test_in_japanese_currencies_have_their_japanese_names_and_symbols() -> None:
    with translation.override("ja"):
        names = dict(currency_choices())
        amounts = [readable_amount(123450, currency) for currency in ("JPY", "CNY", "KWD")]

    assert names["JPY"] == "JPY – 日本円"
    space = "\N{NO-BREAK SPACE}"
    assert amounts == ["￥123,450", f"元{space}1,234.50", f"KWD{space}123.450"]


@pytest.mark.parametrize("language", ["en", "de", "fr", "ja"])
def test_page_and_pdf_say_the_same_of_the_totals(language: str) -> None:
    lines = [a_line("1", "1", "0", category="export"), a_line()]
    invoice = an_invoice(*lines, language=language)
    with translation.override(language):
        printed: Any = contents_of(invoice)["totals"]
        html = render_to_string("invoices/_totals.html", {"invoice": invoice})

    shown = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html)
    assert [[*map(printable, map(unescape, name))] for name in shown] == printed


@pytest.mark.parametrize(
    ("country", "chosen", "language", "title"),
    [
        ("AT", "", "de", "Rechnung 2"),
        ("JP", "", "ja", "請求書 2"),
        ("CH", "fr", "fr", "Facture 2"),
        ("DE", "en", "en", "Invoice 2"),
    ],
)
def test_pdf_and_mail_have_the_language_of_the_customer(
    engine: str, client: Client, country: str, chosen: str, language: str, title: str
) -> None:
    user: User = make_user(email_confirmed=True)
    client.force_login(user)  # type: ignore[arg-type]  # the stubs want a model
    form = typed(customer_country=country, customer_language=chosen)

    path = client.post(NEW, form)["Location"]
    pdf = client.get(f"{path.rstrip('/')}.pdf").content
    client.post(f"{path}send/", form_values(client, f"{path}send/", to="bob@example.org"))

    [invoice] = all_invoices(user.pk, int(path.split("/")[2][:4]))
    assert (invoice.language, invoice.customer.language) == (language, chosen)
    assert title in PdfReader(io.BytesIO(pdf)).pages[0].extract_text()
    assert title[:-2] in mail.outbox[-1].subject
    # The page stays in the language of its reader, and shows the document in its own.
    page = client.get(path).content.decode()
    head = {"de": "Beschreibung", "fr": "Désignation", "ja": "品目", "en": "Description"}
    assert "<h1>Invoice" in page
    assert f'<th scope="col">{head[language]}</th>' in page
    assert ("VAT" in page.partition("<thead>")[2].partition("</thead>")[0]) is (language == "en")


def test_without_a_language_of_the_customer_the_document_has_that_of_the_page(
    client: Client, ann: User
) -> None:
    japanese = {"headers": {"accept-language": "ja"}}
    form = typed(customer_name="田中商店", currency="JPY")
    path = client.post(NEW, form, **japanese)["Location"]  # type: ignore[arg-type]  # the headers

    assert find_invoice(ann.pk, path.split("/")[2]).language == "ja"
    assert "Accept-Language" not in client.get(f"{path.rstrip('/')}.pdf").get("Vary", "")


@pytest.mark.parametrize(
    ("country", "chosen", "terms", "printed"),
    [
        ("DE", "", TERMS, TERMS),
        ("AT", "", TERMS, TERMS),
        ("JP", "de", TERMS, TERMS),
        ("DE", "en", TERMS, ""),
        ("FR", "", TERMS, ""),
        # The page is in English.
        ("IT", "", TERMS, ""),
        ("FR", "", "Sous 14 jours.", "Sous 14 jours."),
    ],
)
def test_terms_of_the_profile_are_printed_in_their_language_or_not_at_all(
    client: Client, ann: User, country: str, chosen: str, terms: str, printed: str
) -> None:
    sell_as(ann, country="DE", name="A", address="B", payment_terms=TERMS)
    form = typed(customer_country=country, customer_language=chosen, payment_terms=terms)
    said = "the payment terms of your profile are left out"

    while_typing = client.post("/invoices/preview/", form).json()["checks"]
    preview = client.get(client.post(NEW, form | {"preview": "1"})["Location"]).content.decode()
    path = client.post(NEW, form)["Location"]

    assert find_invoice(ann.pk, path.split("/")[2]).payment_terms == printed
    for shown in (while_typing, preview):
        assert (said in shown) == (not printed)
    assert (terms in preview.partition("card document")[2]) == bool(printed)


def test_a_request_repeated_in_another_language_gets_its_invoice(account: str) -> None:
    first, second = (issued(account, request_id="r", language=name) for name in ("ja", "en"))

    assert second == first
    assert [item["language"]["S"] for item in stored_invoices(account)] == ["ja"]


@pytest.mark.parametrize("language", ["ja", ""])
def test_a_command_issues_in_the_language_of_the_profile_and_prints_english(
    ann: User, language: str
) -> None:
    edit_profile(ann, language=language)
    asked = ["issueinvoice", "--user", "ann", "--customer", "Bob", "--date", str(DAY)]

    with translation.override("ja"):
        out, _err, code = run(*asked, "--line", "Work;1;100;19")
        _out, refused, _code = run(*asked, "--line", "Work;0;100;19")

    assert code == 0
    assert "119.00" in out
    assert "Enter a number other than 0." in refused
    assert find_invoice(ann.pk, f"{DAY.year}-000001").language == (language or "en")


def test_files_for_programs_are_the_same_in_every_language() -> None:
    files = set()
    for language in ("en", "ja"):
        with translation.override(language):
            files.add(b"".join(YEAR_FILES["csv"]([record_of(an_invoice())])))

    assert len(files) == 1


@pytest.mark.parametrize(
    ("name", "addressed"),
    [
        *(
            (name, f"{name} 御中")
            for name in ("株式会社山田", "（株）山田", "㈱山田", "山田商店", "Bob Ltd")
        ),
        ("山田太郎", "山田太郎 様"),
        *((name, name) for name in ("山田太郎 様", "トヨタ 御中")),
    ],
)
def test_a_japanese_invoice_addresses_the_customer_and_begins_with_the_amount(
    client: Client, ann: User, name: str, addressed: str
) -> None:
    bank = {"bank_name": "見本銀行", "account_kind": "普通", "account_number": "1234567"}
    sell_as(ann, **bank)
    asked = typed(customer_name=name, customer_language="ja", currency="JPY")
    path = client.post(NEW, asked)["Location"]
    pdf = PdfReader(io.BytesIO(client.get(f"{path.rstrip('/')}.pdf").content))
    printed = pdf.pages[0].extract_text()

    for text in (printed, Page(client.get(path)).text):
        assert re.search(rf"(?<!\S){re.escape(addressed)}(?!\S)", text)
        assert text.index("119") < text.index("品目")
        for part in ("ご請求金額", "お振込先", *bank.values()):
            assert part in text
    # Not in another language.
    other = client.post(NEW, asked | typed(customer_name=name, customer_language="de"))["Location"]
    assert "Zahlbetrag" not in client.get(other).text
    assert f"{name}</bdi>" in client.get(other).text
