"""Electronic invoices within PDFs, read back by another library."""

from __future__ import annotations

import io
import logging
from decimal import Decimal
from typing import Any

import pytest
from lxml import etree
from pypdf import PdfReader

from invoices.document.invoice import Invoice
from invoices.document.money import in_major_units, readable_amount
from invoices.output.einvoices import XML_NAME, as_xml, missing
from invoices.output.pdf import render, with_metadata
from tests.invoices import samples
from tests.invoices.test_einvoices import CASES, texts_of

RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
FX = "urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#"
SCHEMA = "{http://www.aiim.org/pdfa/ns/schema#}"
PROPERTY = "{http://www.aiim.org/pdfa/ns/property#}"

WITH_XML = CASES["period, terms, reference, note"]


def strictly_read(invoice: Invoice) -> PdfReader:
    return PdfReader(io.BytesIO(render(invoice)), strict=True)


def metadata_of(reader: PdfReader) -> Any:
    stream: Any = reader.root_object["/Metadata"]
    return etree.fromstring(stream.get_data())


@pytest.mark.parametrize("invoice", CASES.values(), ids=CASES)
def test_a_complete_invoice_has_the_xml_attached_with_the_totals_of_the_text(
    invoice: Invoice,
) -> None:
    reader = strictly_read(invoice)
    text = "\n".join(page.extract_text() for page in reader.pages)

    # Which follows the standard: see test_einvoices.py.
    xml = as_xml(invoice)
    assert reader.attachments == {XML_NAME: [xml]}

    def printed(name: str) -> list[str]:
        """Amounts of the XML as people read them; those of credit notes are below zero."""
        sign = -1 if invoice.is_credit_note else 1
        unit = in_major_units(1, invoice.currency)
        amounts = [int(sign * Decimal(amount) / unit) for amount in texts_of(xml, name)]
        shown = [readable_amount(amount, invoice.currency) for amount in amounts]
        return [amount.replace("\u200e", "").replace("\u2060", "") for amount in shown]

    assert f"Net {printed('TaxBasisTotalAmount')[0]}" in text
    assert f"Total {printed('GrandTotalAmount')[0]}" in text
    for net, vat in zip(printed("BasisAmount"), printed("CalculatedAmount"), strict=True):
        assert f"on {net} {vat}" in text


def test_the_attachment_is_an_alternative_to_the_text() -> None:
    (attached,) = strictly_read(WITH_XML).root_object["/AF"]  # type: ignore[misc]
    file = attached.get_object()

    assert file["/AFRelationship"] == "/Alternative"
    assert file["/F"] == file["/UF"] == XML_NAME
    assert file["/EF"]["/F"]["/Subtype"] == "/text/xml"
    assert "/ModDate" in file["/EF"]["/F"]["/Params"]


def test_the_metadata_names_the_standard_and_else_says_what_it_said_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "pypdf"):
        reader, without = strictly_read(WITH_XML), strictly_read(samples.an_invoice())
        metadata = metadata_of(reader)

    # A reader has nothing to correct.
    assert caplog.messages == []
    found = {each.tag: each.text for each in metadata.iter(f"{{{FX}}}*")}
    assert found == {
        f"{{{FX}}}DocumentFileName": "factur-x.xml",
        f"{{{FX}}}DocumentType": "INVOICE",
        f"{{{FX}}}Version": "1.0",
        f"{{{FX}}}ConformanceLevel": "EN 16931",
    }
    (schema,) = (
        each.getparent() for each in metadata.iter(f"{SCHEMA}namespaceURI") if each.text == FX
    )
    assert schema.getparent().tag == f"{RDF}Bag"
    assert schema.findtext(f"{SCHEMA}prefix") == "fx"
    described = {f"{{{FX}}}{each.text}" for each in schema.iter(f"{PROPERTY}name")}
    assert described == set(found)
    others = {each.tag for each in metadata.iter("{*}*")} - set(found)
    assert others == {each.tag for each in metadata_of(without).iter("{*}*")}
    assert reader.metadata is not None
    assert reader.metadata.title == "Invoice 2026-000042"
    assert {"/Lang", "/MarkInfo", "/StructTreeRoot", "/OutputIntents"} <= set(reader.root_object)


@pytest.mark.parametrize(
    "invoice", [samples.an_invoice(), samples.a_voided_invoice()], ids=["incomplete", "voided"]
)
def test_other_invoices_have_no_xml(invoice: Invoice) -> None:
    reader = strictly_read(invoice)

    assert missing(invoice)
    assert reader.attachments == {}
    assert FX not in etree.tostring(metadata_of(reader)).decode()


def test_a_pdf_of_an_unknown_form_is_rejected() -> None:
    with pytest.raises(ValueError, match="another form"):
        with_metadata(b"%PDF-1.7\n")
