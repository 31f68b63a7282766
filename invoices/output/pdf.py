"""An invoice as a PDF/A-3a and PDF/UA-1 file, always the same bytes until it is voided.

`render` makes it. Pages, mails and exports get it from `pdf_of`, which lets the helper process
(`helper`) make it and caches it. The same invoice has the same bytes until our code, a catalogue, a
font or a package changes.

If an invoice has all values that EN 16931 requires, the electronic invoice is attached (Factur-X,
ZUGFeRD).

The template `invoice.typ` lays out the texts of `invoices.output.contents`. The PDF is in the
language in which the invoice was issued, not in the reader's.
"""

import json
import re
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.utils import translation

from invoices.document.fonts import font_folders
from invoices.document.invoice import Invoice
from invoices.output.contents import contents_of
from invoices.output.einvoices import XML_NAME, as_xml, missing
from invoices.output.helper import run_in_helper

if TYPE_CHECKING:
    import typst

_TEMPLATE = Path(__file__).with_name("invoice.typ")
# Typst keeps intermediate results of the last compilations: 80 MB for each of the largest invoices.
# After an invoice with more characters of JSON than this, empty documents (2 ms each) are typeset,
# which replace its data in the cache.
_LARGE = 20_000
_REMEMBERED_COMPILATIONS = 11


def render(invoice: Invoice) -> bytes:
    """`invoice` as a PDF file. Takes 10 ms, and a second for the largest.

    A character that no font has is printed as U+FFFD; `fonts.missing_characters` finds it before.
    """
    with translation.override(invoice.language):
        contents = contents_of(invoice)
    is_electronic = not invoice.is_draft and not missing(invoice)
    xml = {"name": XML_NAME, "text": as_xml(invoice).decode()} if is_electronic else None
    issued = datetime.combine(invoice.issued_at, datetime.min.time(), UTC)
    pdf = _typeset(json.dumps(contents | {"xml": xml}, ensure_ascii=False), int(issued.timestamp()))
    return with_metadata(pdf) if is_electronic else pdf


def _typeset(contents: str, timestamp: int) -> bytes:
    # Imported with the first PDF, so that commands and servers start without it.
    import typst

    fonts = _fonts()
    pdf = typst.compile(
        _TEMPLATE,
        font_paths=fonts,
        sys_inputs={"invoice": contents},
        timestamp=timestamp,
        # The file is suitable for archives and attachments (PDF/A-3), and for screen readers
        # (PDF/UA).
        pdf_standards=["a-3a", "ua-1"],
    )
    if len(contents) > _LARGE:
        for _compilation in range(_REMEMBERED_COMPILATIONS):
            typst.compile(b"", font_paths=fonts)
    return pdf


@cache
def _fonts() -> "typst.Fonts":
    """The fonts, loaded once per process and shared by its threads."""
    import typst

    return typst.Fonts(
        include_system_fonts=False,
        include_embedded_fonts=False,
        font_paths=list(map(str, font_folders())),
    )


# Metadata -----------------------------------------------------------------------------------------

# The metadata of Factur-X, which says that a PDF has an electronic invoice.
#
# Typst attaches the XML but has no option for other metadata. So an incremental update is appended
# to its file: the same metadata object with more properties, and a reference to it. That takes 0.1
# ms; a library that reads the whole file takes from 20 to 400.
#
# Sources: https://fnfe-mpe.org/factur-x/ (properties and extension schema); ISO 32000-1, 7.5.6 (the
# update), 7.5.4 and 7.5.5 (its table and trailer).


def _without_indentation(name: str) -> str:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return "".join(map(str.strip, text.splitlines()))


#: The inserted texts, and the texts before which they are inserted. PDF/A requires a schema for
#: each property that the standard does not define.
_ADDITIONS = (
    (_without_indentation("facturx_schema.xml"), "</rdf:Bag></pdfaExtension:schemas>"),
    (_without_indentation("facturx_values.xml"), "</rdf:RDF>"),
)

_METADATA = re.compile(rb"/Metadata (\d+) 0 R")
_STREAM = re.compile(rb"<</Length (\d+)/Type/Metadata/Subtype/XML>>\nstream\n")
_END = re.compile(rb"trailer\n<<(.+)>>\nstartxref\n(\d+)\n%%EOF\s*\Z", re.DOTALL)


def with_metadata(pdf: bytes) -> bytes:
    """`pdf`, as Typst makes it for PDF/A, with the metadata of Factur-X.

    Raises:
        ValueError: the file has another form, so another version of Typst is installed.
    """
    # Typst writes the metadata and then the catalog last.
    catalog = pdf.rfind(b"/Type/Catalog")
    reference = _METADATA.search(pdf, catalog)
    stream = reference and _STREAM.search(pdf, pdf.rfind(b"\n%s 0 obj\n" % reference[1]))
    end = _END.search(pdf, catalog)
    if not (reference and stream and end):
        raise ValueError("Typst wrote a PDF of another form than expected.")
    xmp = pdf[stream.end() : stream.end() + int(stream[1])].decode()
    for addition, place in _ADDITIONS:
        before, found, after = xmp.partition(place)
        if not found:
            raise ValueError(f"The metadata has no {place}.")
        xmp = before + addition + found + after
    data = xmp.encode()
    number = int(reference[1])
    previous = int(end[2])
    at = len(pdf) + 1
    body = b"\n%d 0 obj\n<</Length %d/Type/Metadata/Subtype/XML>>\nstream\n%s\nendstream\nendobj\n"
    update = body % (number, len(data), data)
    table = b"xref\n0 1\n0000000000 65535 f \n%d 1\n%010d 00000 n \n" % (number, at)
    trailer = b"trailer\n<<%s/Prev %d>>\nstartxref\n%d\n%%%%EOF\n"
    return pdf + update + table + trailer % (end[1], previous, len(pdf) + len(update))


# The cache ----------------------------------------------------------------------------------------

#: A process caches this many PDFs: those that were used last.
MOST_KEPT = 64


def pdf_of(invoice: Invoice, *, keep: bool = True) -> bytes:
    """`invoice` as a PDF file, from the cache if it is there; see `render`.

    An export does not `keep` its files, because they would replace all others in the cache.

    Raises:
        Busy: see `invoices.output.helper.run_in_helper`, with its other errors.
    """
    if keep:
        return _kept(invoice, repr(invoice))
    return run_in_helper(render, invoice, account=invoice.account)


@lru_cache(MOST_KEPT)
def _kept(invoice: Invoice, _contents: str) -> bytes:
    """The cached PDF.

    `_contents` is part of the key: equal invoices may be voided at different times.
    """
    return pdf_of(invoice, keep=False)
