"""The texts of a page, and those that are not in the reader's language."""

from __future__ import annotations

import re
from html.parser import HTMLParser

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
