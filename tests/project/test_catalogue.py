"""The catalogues contain exactly the texts of the sources, each translated."""

from pathlib import Path

import pytest

from tests import catalogue

pytestmark = pytest.mark.parametrize(
    "path", catalogue.CATALOGUES, ids=lambda path: str(path.relative_to(catalogue.ROOT))
)


def test_a_catalogue_has_every_text_of_the_sources_and_no_other(path: Path) -> None:
    assert catalogue.written(catalogue.renewed(path)) == path.read_bytes(), "`make messages`"


def test_every_text_is_translated(path: Path) -> None:
    found = catalogue.read(path)

    missing = [
        message.id
        for message in found
        if message.fuzzy or not all(target.strip() for target in catalogue.texts(message)[1])
    ]
    assert not found.fuzzy
    assert missing == []


def test_a_translation_has_the_placeholders_of_its_text(path: Path) -> None:
    different = [
        message.id
        for message in catalogue.read(path)
        if message.id
        for sources, targets in [catalogue.texts(message)]
        # A language with one form for all numbers takes that of many.
        for target in targets
        if catalogue.placeholders(target) != catalogue.placeholders(sources[-1])
    ]

    assert different == []


def test_the_compiled_catalogue_is_up_to_date(path: Path) -> None:
    compiled = catalogue.compiled(catalogue.read(path))
    committed = path.with_suffix(".mo").read_bytes()

    assert catalogue.messages(committed) == catalogue.messages(compiled), "run `make messages`"
