"""The metadata by which a PDF says that it has an electronic invoice, as Factur-X asks.

Typst attaches the XML but has no option for other metadata. So an incremental update is appended
to its file: the same metadata object with more properties, and a reference to it. That takes 0.1
ms; a library that reads the whole file takes from 20 to 400.

Sources: https://fnfe-mpe.org/factur-x/ (properties and extension schema); ISO 32000-1, 7.5.6 (the
update), 7.5.4 and 7.5.5 (its table and trailer).
"""

from __future__ import annotations

import re
from pathlib import Path


def _without_indentation(name: str) -> str:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return "".join(map(str.strip, text.splitlines()))


#: What is inserted, and before what: PDF/A has a schema for each property that it does not know.
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
    number, previous = int(reference[1]), int(end[2])
    at = len(pdf) + 1
    body = b"\n%d 0 obj\n<</Length %d/Type/Metadata/Subtype/XML>>\nstream\n%s\nendstream\nendobj\n"
    update = body % (number, len(data), data)
    table = b"xref\n0 1\n0000000000 65535 f \n%d 1\n%010d 00000 n \n" % (number, at)
    trailer = b"trailer\n<<%s/Prev %d>>\nstartxref\n%d\n%%%%EOF\n"
    return pdf + update + table + trailer % (end[1], previous, len(pdf) + len(update))
