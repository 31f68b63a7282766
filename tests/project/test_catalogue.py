"""The catalogues are whole: every text of the sources is translated, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from babel.messages.catalog import Catalog, Message

from tests import catalogue

LANGUAGES = pytest.mark.parametrize("language", catalogue.LANGUAGES)


@pytest.fixture(scope="module")
def sources() -> Catalog:
    return catalogue.extracted()


def own(messages: Catalog) -> Iterator[Message]:
    """The messages of a catalogue without its head."""
    return (message for message in messages if message.id)


def named(messages: Catalog) -> set[tuple[str | None, str]]:
    return {(message.context, str(message.id)) for message in own(messages)}


def test_the_sources_say_something_in_python_and_in_templates(sources: Catalog) -> None:
    places = {path for message in own(sources) for path, _line in message.locations}

    assert {"accounts/forms.py", "templates/home.html", "invoices/pdf.py"} <= places
    assert "templates/accounts/mail/reset_subject.txt" in places


@LANGUAGES
def test_a_catalogue_has_every_text_of_the_sources_and_no_other(
    language: str, sources: Catalog
) -> None:
    found = catalogue.read(language)

    assert named(found) == named(sources), "run `make messages`"
    assert not found.obsolete


@LANGUAGES
def test_every_text_is_translated_for_certain(language: str) -> None:
    found = catalogue.read(language)

    missing = [
        message.id
        for message in own(found)
        if message.fuzzy or not all(target.strip() for target in catalogue.texts(message)[1])
    ]
    assert not found.fuzzy
    assert missing == []


@LANGUAGES
def test_translations_are_filled_in_as_their_texts_are(language: str) -> None:
    different = [
        message.id
        for message in own(catalogue.read(language))
        for sources, targets in [catalogue.texts(message)]
        # A language with one form for all numbers takes that of many.
        for target in targets
        if catalogue.placeholders(target) != catalogue.placeholders(sources[-1])
    ]

    assert different == []


@LANGUAGES
def test_a_catalogue_is_written_as_the_program_writes_it(language: str) -> None:
    path = catalogue.path_of(language)

    assert catalogue.written(catalogue.renewed(language)) == path.read_bytes(), "`make messages`"


@LANGUAGES
def test_what_programs_read_is_compiled_from_what_people_write(language: str) -> None:
    compiled = catalogue.compiled(catalogue.read(language))
    committed = catalogue.path_of(language).with_suffix(".mo").read_bytes()

    assert catalogue.messages(committed) == catalogue.messages(compiled), "run `make messages`"


def test_a_text_that_is_new_in_the_sources_is_found(sources: Catalog) -> None:
    found = catalogue.read("ja")
    found.delete("Sign in")

    assert named(sources) - named(found) == {(None, "Sign in")}
