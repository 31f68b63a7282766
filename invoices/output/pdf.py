"""An invoice as a PDF/A-3a and PDF/UA-1 file, always the same bytes until it is voided.

If an invoice has all that EN 16931 asks, the electronic invoice is attached (Factur-X, ZUGFeRD).

The template `invoice.typ` lays out the texts of `invoices.output.contents`. The PDF is in the
language that the invoice was issued in, whatever the reader's language is.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.utils import translation

from dynamo.extending import on_new_process
from invoices.document.fonts import font_folders
from invoices.document.invoice import Invoice
from invoices.output.contents import contents_of
from invoices.output.einvoices import XML_NAME, as_xml, missing
from invoices.output.facturx import with_metadata
from web.helper import computed

if TYPE_CHECKING:
    import typst

_TEMPLATE = Path(__file__).with_name("invoice.typ")
# For archives and attachments (PDF/A-3), and for screen readers (PDF/UA).
_STANDARDS: list[typst.PDFStandard] = ["a-3a", "ua-1"]
# Typst keeps intermediate results of the last compilations: 80 MB for each of the largest invoices.
# After a large one (so many characters of JSON), empty documents (2 ms each) displace them.
_LARGE = 20_000
_REMEMBERED_COMPILATIONS = 11


def render(invoice: Invoice) -> bytes:
    """`invoice` as a PDF file. Takes 10 ms, and a second for the largest.

    Pages call `invoices.output.typesetting.pdf_of`, which makes it in the helper process.

    A character that no font has is printed as U+FFFD; `fonts.missing_characters` finds it before.
    """
    with translation.override(invoice.language):
        contents = contents_of(invoice)
    is_electronic = not invoice.is_draft and not missing(invoice)
    contents["xml"] = (
        {"name": XML_NAME, "text": as_xml(invoice).decode()} if is_electronic else None
    )
    issued = datetime.combine(invoice.issued_at, datetime.min.time(), UTC)
    pdf = _typeset(json.dumps(contents, ensure_ascii=False), int(issued.timestamp()))
    return with_metadata(pdf) if is_electronic else pdf


def _typeset(contents: str, timestamp: int) -> bytes:
    if _forked:
        return computed(_typeset, contents, timestamp)
    # Imported with the first PDF, so that commands and servers start without it.
    import typst

    fonts = _fonts()
    pdf = typst.compile(
        _TEMPLATE,
        font_paths=fonts,
        sys_inputs={"invoice": contents},
        timestamp=timestamp,
        pdf_standards=_STANDARDS,
    )
    if len(contents) > _LARGE:
        for _compilation in range(_REMEMBERED_COMPILATIONS):
            typst.compile(b"", font_paths=fonts)
    return pdf


@cache
def _fonts() -> typst.Fonts:
    """The fonts, loaded once per process and shared by its threads."""
    import typst

    return typst.Fonts(
        include_system_fonts=False,
        include_embedded_fonts=False,
        font_paths=list(map(str, font_folders())),
    )


# Typst has a pool of threads, which a forked child does not have: it would wait for them forever.
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = _forked or "typst" in sys.modules


on_new_process(_after_fork)
