"""The language of a document: by the customer, in English, German, French or Japanese."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import translation
from pypdf import PdfReader

from accounts.models import User
from invoices.document.invoice import Customer
from invoices.document.money import bare_price, readable_amount
from invoices.output.contents import contents_of
from invoices.pages.changes import SendForm
from invoices.store.lists import all_invoices
from tests import catalogue
from tests.factories import make_user
from tests.invoices.forms import NEW, typed
from tests.sample_invoices import SAMPLES

#: Texts that are the same in several languages.
SAME = {"IBAN", "BIC", "Date", "Description", "h", "kg", "m"}


@pytest.mark.parametrize("path", catalogue.DOCUMENTS, ids=lambda path: path.parts[-3])
def test_a_catalogue_of_documents_has_texts_of_the_sources_with_their_placeholders(
    path: Path,
) -> None:
    found, all_texts = catalogue.read(path), catalogue.read(catalogue.CATALOGUES[0])
    german, french = ({each.id for each in catalogue.read(one)} for one in catalogue.DOCUMENTS)

    for each in filter(lambda message: message.id, found):
        assert all_texts.get(each.id, each.context) is not None, each.id
        assert catalogue.placeholders(str(each.id)) == catalogue.placeholders(str(each.string))
        assert each.string
    assert german == french
    committed = path.with_suffix(".mo").read_bytes()
    assert catalogue.messages(committed) == catalogue.messages(catalogue.compiled(found))


def _labels(contents: dict[str, Any]) -> list[str]:
    """What the template prints and nobody has typed."""
    banner = [contents["credited"]["banner"]] if contents["credited"] else []
    return [
        *contents["labels"].values(),
        contents["title"],
        *(label for label, _text in contents["details"] + contents["bank"] + contents["totals"]),
        *(column["title"] for column in contents["columns"]),
        *(text for _description, text in contents["descriptions"] if text),
        *banner,
    ]


@pytest.mark.parametrize("language", ["de", "fr"])
@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_of_a_document_stays_english(name: str, language: str) -> None:
    with translation.override("en"):
        english = _labels(contents_of(SAMPLES[name]))
    with translation.override(language):
        found = _labels(contents_of(SAMPLES[name]))

    same = {here for here, there in zip(found, english, strict=True) if here == there}
    assert same - SAME == set()


def test_numbers_are_written_as_in_the_language() -> None:
    def written(language: str) -> list[str]:
        with translation.override(language):
            amounts = [readable_amount(-123450, "EUR"), bare_price(Decimal("1234567.5"), "EUR")]
        return [text.translate({0x200E: None, 0x2060: None, 0xA0: " "}) for text in amounts]

    assert written("en") == ["−€1,234.50", "1,234,567.50"]
    assert written("de") == ["−1.234,50 €", "1.234.567,50"]
    assert written("fr") == ["−1 234,50 €", "1 234 567,50"]


@pytest.mark.parametrize(
    ("country", "chosen", "language", "title"),
    [
        ("AT", "", "de", "Rechnung 2"),
        ("FR", "", "fr", "Facture 2"),
        ("JP", "", "ja", "請求書 2"),
        ("US", "", "en", "Invoice 2"),
        ("", "", "en", "Invoice 2"),
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
    sent = {"to": "bob@example.org", "request_id": SendForm.new_request_id()}
    client.post(f"{path}send/", sent)

    [invoice] = all_invoices(user.pk, int(path.split("/")[2][:4]))
    assert (invoice.language, invoice.customer.language) == (language, chosen)
    assert title in PdfReader(io.BytesIO(pdf)).pages[0].extract_text()
    assert title[:-2] in mail.outbox[-1].subject
    assert Customer("Bob", country=country, language=chosen).language_or("en") == language
    # The page stays in the language of its reader, and shows the document in its own.
    page = client.get(path).content.decode()
    head = {"de": "Beschreibung", "fr": "Désignation", "ja": "品目", "en": "Description"}
    assert "<h1>Invoice" in page
    assert f'<th scope="col">{head[language]}</th>' in page
    assert ("VAT" in page.partition("<thead>")[2].partition("</thead>")[0]) is (language == "en")
