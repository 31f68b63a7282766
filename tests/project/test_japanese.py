"""For Japanese readers, pages, form errors, mails and the PDF are completely Japanese."""

import io
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.conf import settings as site
from django.template.loader import render_to_string
from django.test import Client
from django.utils import translation
from pypdf import PdfReader

from accounts.models import User
from accounts.sessions import services as sessions
from invoices.document.invoice import Customer, Seller
from invoices.output.pdf import render
from invoices.store.settlement import void
from tests.invoice_factories import DAY, issued, sell_as
from tests.invoices.samples import a_line, a_voided_invoice
from tests.project.test_url_map import ROWS, arrive, path_of, send

JAPANESE = {"accept-language": "ja-JP,ja;q=0.9,en;q=0.8"}
VISITORS = pytest.mark.parametrize("visitor", ["anonymous", "staff"])
MAILS = sorted((site.BASE_DIR / "accounts/templates/accounts/mail").glob("*.txt"))
ERRORS = sorted(site.BASE_DIR.glob("templates/[45]*.html"))
# Other states of these pages: a search without results, a year without invoices.
FURTHER = [
    f"/invoices/?year={DAY.year}",
    f"/invoices/?year={DAY.year}&customer=誰でもない",
    f"/invoices/?year={DAY.year}&before=1",
    "/invoices/?year=1999&customer=誰でもない&before=9",
    "/invoices/?year=1999",
    f"/invoices/{DAY.year}-000002/",
    f"/invoices/new/?from={DAY.year}-000001",
    "/nothing/",
]
_ACCOUNTS = re.compile(r"(looked\.at|user\d+)(@example\.(com|org))?")
# Not valid in any field: it is too long, and has a character that reverses the text.
UNACCEPTABLE = "\u202e" + "9" * 2000


def speaking_japanese(visitor: str) -> tuple[Client, User]:
    client, user = arrive(visitor)
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = JAPANESE["accept-language"]
    return client, user


def faults(response: Any) -> list[str]:
    """The problems of a page: its language attributes, and texts that are not Japanese."""
    if not response.headers.get("Content-Type", "").startswith("text/html"):
        return []
    # The names and addresses of accounts, on staff pages without markup.
    page = _ACCOUNTS.sub("", response.content.decode())
    if not page or response.status_code == 302:
        return []
    wrong = [] if '<html lang="ja"' in page else ["lang"]
    wrong += [] if response["Content-Language"] == "ja" else ["Content-Language"]
    return wrong + untranslated(page)


def test_text_that_is_not_japanese_is_found() -> None:
    page = '<p title="A">あ <b>B</b><bdi>C</bdi><i lang="en">D</i><img alt="E">PDF</p>'
    page += '<input type="submit" value="F"><option>EUR – G</option>'

    assert sorted(untranslated(page)) == ["A", "B", "E", "EUR – G", "F"]
    assert "あ" in "".join(Visible(page).said)


@VISITORS
@pytest.mark.usefixtures("engine")
def test_every_page_is_japanese(visitor: str) -> None:
    client, user = speaking_japanese(visitor)
    sell_as(user, name="山田商店", address="東京都")
    sessions.begin(User.get(user.pk), browser="somebody's own", address="192.0.2.1")
    issued(user.pk)
    issued(user.pk)
    void(user.pk, f"{DAY.year}-000002", "誤り")

    found = {path: faults(client.get(path)) for path in [*map(path_of, ROWS), *FURTHER]}

    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@VISITORS
@pytest.mark.parametrize("typed", ["", UNACCEPTABLE], ids=["nothing", "what no field takes"])
@pytest.mark.usefixtures("engine")
def test_every_form_shows_its_errors_in_japanese(visitor: str, typed: str) -> None:
    client, user = speaking_japanese(visitor)
    issued(user.pk)
    found: dict[str, list[str]] = {}
    for name, row in ROWS.items():
        if name in {"logout", "set_language"}:
            continue
        names = dict.fromkeys(row.sent(user), typed)
        if name == "profile":
            names = dict.fromkeys(("full_name", "phone_number", "vat_id", "language"), typed)
        found[name] = faults(send(client, path_of(name), names))

    assert {name: wrong for name, wrong in found.items() if wrong} == {}


MADE = [
    *((path.name, {"wait": "15分", "is_sign_in": True, "is_password": True}) for path in ERRORS),
    *(
        (
            f"accounts/mail/{path.name}",
            dict.fromkeys(("site", "link", "sign_in", "sign_up"), "※")
            | {"days": 3, "username": username},
        )
        for path in MAILS
        for username in ("", "太郎")
    ),
]


def test_every_error_page_and_every_mail_is_japanese() -> None:
    for template, context in MADE:
        with translation.override("ja"):
            text = render_to_string(template, context)

        assert text.strip()
        assert untranslated(text) == [], template


def test_every_text_of_a_pdf_is_japanese() -> None:
    invoice = a_voided_invoice(
        seller=Seller("山田商店", "東京都", "1234"),
        customer=Customer("田中商店"),
        lines=(a_line(description="作業"),),
        note="月末まで",
        void_reason="誤り",
        language="ja",
    )

    text = "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(render(invoice))).pages)

    assert foreign_words(text) == set()
    for word in ("請求書 2026-000042", "発行日", "2026年11月21日", "小計", "合計", "無効"):
        assert word in text


# What a page shows --------------------------------------------------------------------------------


#: Words that are in Latin letters in Japanese too.
ALLOWED = {
    # names
    *("Amazon", "EN", "Factur", "X", "ZUGFeRD", "ID", "Dynamo", "DynamoDB", "Ledger"),
    # kinds of files, and international terms
    *("CSV", "JSON", "PDF", "UUID", "UTC", "ZIP"),
    # names of numbers: of bank accounts, and of businesses in France
    *("BIC", "IBAN", "SIREN", "SIRET", "SWIFT"),
    # the letter of a registration number
    "T",
    # examples of a currency code and of a stored key; units
    *("EUR", "EU", "userName", "KB"),
}
_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
# Each choice of a currency begins with its code; some names have another code, or only one.
_CURRENCY = re.compile(r"^[A-Z]{3} – ")
_CODE = re.compile(r"\b[A-Z]{3}\b")
_VOID = {"br", "hr", "img", "input", "link", "meta"}
_SAID = {"alt", "aria-label", "aria-description", "data-label", "placeholder", "title"}


class Visible(HTMLParser):
    """The texts of a page (`said`), without those that users have typed (`bdi`, `dir="auto"`)."""

    def __init__(self, page: str, language: str = "ja") -> None:
        super().__init__()
        self.language = language
        self.said: list[str] = []
        #: For each open element, whether its texts count.
        self._counts = [True]
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        counts = (
            self._counts[-1]
            and tag not in {"bdi", "script", "style", "textarea"}
            and values.get("dir") != "auto"
            and values.get("lang", self.language) == self.language
        )
        if counts:
            self.said += [values[name] for name in _SAID & values.keys()]
            if tag == "input" and values.get("type") in {"submit", "button"}:
                self.said.append(values.get("value", ""))
        if tag not in _VOID:
            self._counts.append(counts)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self._counts.pop()

    def handle_data(self, data: str) -> None:
        if self._counts[-1]:
            self.said.append(data)


def foreign_words(text: str) -> set[str]:
    """The words of `text` in Latin letters that are not ALLOWED."""
    text = text.strip()
    if _CURRENCY.match(text):
        text = _CODE.sub("", text)
    return set(_WORD.findall(text)) - ALLOWED


def untranslated(page: str) -> list[str]:
    """The texts of a Japanese page that are not Japanese."""
    return [text.strip() for text in Visible(page).said if foreign_words(text)]
