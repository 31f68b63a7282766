"""The PDFs of `docs/samples/`: up to date, valid and small. `make samples` writes them."""

import io

import pytest
from pypdf import PdfReader

from invoices.document.invoice import Invoice
from invoices.output.einvoices import XML_NAME, as_xml
from invoices.output.pdf import render
from tests.sample_invoices import FOLDER, PICTURES, SAMPLES, path_of, picture_of, picture_path

LARGEST = 100_000


def parts_of(pdf: bytes) -> tuple[list[str], list[bytes]]:
    """The text of each page, and the attached XML."""
    reader = PdfReader(io.BytesIO(pdf))
    return [page.extract_text() for page in reader.pages], reader.attachments[XML_NAME]


@pytest.mark.parametrize(("name", "invoice"), SAMPLES.items(), ids=SAMPLES)
def test_a_sample_is_up_to_date_and_valid(name: str, invoice: Invoice) -> None:
    stored, made = path_of(name).read_bytes(), render(invoice)

    # Other versions of the fonts make other bytes.
    assert stored == made or parts_of(stored) == parts_of(made)
    # The XML follows the standard: see test_einvoices.py.
    assert parts_of(stored)[1] == [as_xml(invoice)]
    assert len(stored) < LARGEST


def test_the_folder_and_its_page_have_all_samples_and_nothing_else() -> None:
    page = (FOLDER / "README.md").read_text()

    assert {path.name for path in FOLDER.glob("*.pdf")} == {f"{name}.pdf" for name in SAMPLES}
    assert [name for name in SAMPLES if f"({name}.pdf)" not in page] == []


@pytest.mark.parametrize("language", PICTURES)
def test_a_picture_of_the_start_page_shows_its_sample(language: str) -> None:
    stored = picture_path(language).read_bytes()
    made = picture_of(SAMPLES[PICTURES[language]])

    # Width and height. Colors of single pixels depend on how a processor rounds.
    assert stored[:24] == made[:24]
    assert len(stored) == pytest.approx(len(made), rel=0.02)
    assert len(stored) < LARGEST * 1.1
