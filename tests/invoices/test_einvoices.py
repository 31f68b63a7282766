"""Electronic invoices, checked by the rules of EN 16931."""

import io
import logging
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from hypothesis import given, settings, strategies as st
from lxml import etree
from pypdf import PdfReader

from accounts.models import User
from dynamo.inputs import Choice, InputAttribute
from invoices.document.amounts import LINE_FIELDS, WITHOUT_VAT, Line
from invoices.document.invoice import TYPED_FIELDS, Customer, Draft, Invoice, Seller, draw_up
from invoices.document.money import in_major_units, readable_amount
from invoices.output.einvoices import XML_NAME, as_xml, missing
from invoices.output.pdf import render, with_metadata
from invoices.store.issuing import issue_invoice
from tests.commands import run
from tests.invoices import samples
from tests.invoices.en16931 import broken_rules, codes_beside
from tests.invoices.samples import FULL_SELLER as SELLER, PLAIN_LINES, a_line
from tests.sample_invoices import SAMPLES

CUSTOMER = Customer("Bob SA", "1 rue Basse\n75001 Paris", "FR40303265045", "FR")
RAM = "{urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100}"


def an_invoice(*lines: Line, seller: Seller = SELLER, **values: Any) -> Invoice:
    """An invoice that has all that the standard asks."""
    defaults = {
        "customer": CUSTOMER,
        "lines": lines or (TEA,),
        "currency": "EUR",
        "supplied_from": date(2026, 11, 22),
        "due_date": date(2026, 12, 22),
    }
    invoice = draw_up(Draft(**defaults | values), "account-1", seller, date(2026, 11, 22), "r")
    return replace(invoice, number=42)


def texts_of(xml: bytes, name: str) -> list[str]:
    """The texts of the elements with this name."""
    return [item.text or "" for item in etree.fromstring(xml).iter(f"{RAM}{name}")]


TEA = a_line("3", "9.99")

CASES = {
    "mixed rates": an_invoice(TEA, a_line("3", "9.99", "7", category="reduced"), a_line("-1", "5")),
    "discount": an_invoice(TEA, a_line("1", "-2.50")),
    "prices include tax": an_invoice(TEA, a_line("7", "0.333"), prices_include_tax=True),
    "reverse charge": an_invoice(a_line(vat_rate="0", category="reverse_charge")),
    "intra-community": an_invoice(a_line(vat_rate="0", category="intra_community")),
    "export": an_invoice(
        a_line(vat_rate="0", category="export"), customer=replace(CUSTOMER, country="JP")
    ),
    "exempt": an_invoice(a_line(vat_rate="0", category="exempt"), exemption_reason="§ 19 UStG"),
    "zero rate": an_invoice(a_line(vat_rate="0")),
    "period, terms, reference, note": an_invoice(
        supplied_to=date(2026, 11, 30),
        payment_terms="30 days",
        buyer_reference="PO 4711",
        note="Thank you.\nあ <&>",
    ),
    "credit note": an_invoice(
        a_line("-3", "9.99"), credits="2026-000041", credit_reason="Returned"
    ),
    "no VAT ID": an_invoice(seller=replace(SELLER, vat_id="")),
    "yen": an_invoice(a_line("3", "999", "10"), currency="JPY"),
    "units": an_invoice(*(replace(TEA, unit=unit) for unit in ("HUR", "LS", ""))),
    "customer’s VAT ID in another form": an_invoice(
        customer=replace(CUSTOMER, vat_id="fr 40303265045")
    ),
    "customer’s number that is not a VAT ID": an_invoice(
        customer=replace(CUSTOMER, vat_id="12345")
    ),
    "nothing to pay, and no due date": an_invoice(a_line("1"), a_line("-1"), due_date=None),
    "below zero, and no due date": an_invoice(a_line("1"), a_line("-2"), due_date=None),
    "address of five lines": an_invoice(customer=replace(CUSTOMER, address="a\nb\nc\nd\ne")),
}


@pytest.mark.parametrize("invoice", (CASES | SAMPLES).values(), ids=CASES | SAMPLES)
def test_an_electronic_invoice_follows_the_standard(invoice: Invoice) -> None:
    assert missing(invoice) == []
    assert broken_rules(as_xml(invoice)) == []


def offered(attribute: InputAttribute[Any]) -> list[str]:
    """The codes that a form offers."""
    assert isinstance(attribute, Choice)
    return [code for code, _name in attribute.offered() if code]


def test_every_currency_and_country_of_a_form_is_in_the_lists_of_the_standard_or_is_refused() -> (
    None
):
    written = {
        code
        for country in offered(TYPED_FIELDS["customer_country"])
        for code in texts_of(
            as_xml(an_invoice(customer=replace(CUSTOMER, country=country))), "CountryID"
        )
    }
    assert len(written) > 200
    assert written <= codes_beside("FR", "JP", "US")
    lacking = {
        code: lacks
        for code in offered(TYPED_FIELDS["currency"])
        if (lacks := missing(an_invoice(currency=code)))
    }
    assert lacking == {
        code: ["Electronic invoices have amounts of two decimals at most."]
        for code in ("BHD", "JOD", "KWD", "LYD", "OMR", "TND")
    }
    assert set(offered(TYPED_FIELDS["currency"])) - lacking.keys() <= codes_beside("EUR", "JPY")


@pytest.mark.parametrize("category", offered(LINE_FIELDS["tax_category"]))
def test_every_unit_and_tax_category_of_a_form_is_in_the_lists_of_the_standard(
    category: str,
) -> None:
    line = a_line(vat_rate="0" if category in WITHOUT_VAT else "19", category=category)
    units = [replace(line, unit=code) for code in offered(LINE_FIELDS["unit"])]
    invoice = an_invoice(*units, exemption_reason="§ 4 UStG")

    assert missing(invoice) == broken_rules(as_xml(invoice)) == []


def test_two_categories_that_the_standard_does_not_tell_apart_are_one() -> None:
    cent = a_line("3", "0.01")
    xml = as_xml(an_invoice(cent, replace(cent, tax_category="reduced")))

    assert broken_rules(xml) == []
    # The sum of both, each rounded.
    assert texts_of(xml, "TaxTotalAmount") == ["0.02"]


@settings(max_examples=30)
@given(st.lists(PLAIN_LINES, min_size=1, max_size=12), st.booleans())
def test_any_lines_add_up_by_the_rules_of_the_standard(
    lines: list[Line], include_tax: bool
) -> None:
    assert broken_rules(as_xml(an_invoice(*lines, prices_include_tax=include_tax))) == []


def test_the_xml_has_positive_amounts_the_credited_invoice_and_the_units_of_lines() -> None:
    xml = as_xml(CASES["credit note"])

    assert texts_of(xml, "TypeCode")[0] == "381"
    assert texts_of(xml, "GrandTotalAmount") == ["35.66"]
    assert texts_of(xml, "IssuerAssignedID") == ["2026-000041"]
    quantities = etree.fromstring(as_xml(CASES["units"])).iter(f"{RAM}BilledQuantity")
    assert [quantity.get("unitCode") for quantity in quantities] == ["HUR", "LS", "C62"]


#: Changes of a complete invoice, and what it lacks then.
LACKS: list[tuple[dict[str, Any], str]] = [
    ({"seller": {"address": ""}}, "The seller’s address"),
    ({"seller": {"country": ""}}, "The seller’s country"),
    ({"seller": {"vat_id": "", "tax_number": ""}}, "The seller’s VAT ID or tax number"),
    ({"seller": {"vat_id": "T1180301018771"}, "category": "export"}, "The seller’s VAT ID"),
    ({"seller": {"name": "A\uffff"}}, "Texts without the characters that XML does not allow"),
    ({"customer": {"address": ""}}, "The customer’s address"),
    ({"customer": {"country": ""}}, "The customer’s country"),
    ({"customer": {"vat_id": "12345"}, "category": "reverse_charge"}, "The customer’s VAT ID"),
    ({"customer": {"vat_id": ""}, "category": "reverse_charge"}, "The customer’s VAT ID"),
    ({"due_date": None}, "The due date or the payment terms"),
    ({"supplied_from": None, "category": "intra_community"}, "The date of supply"),
    ({"category": "exempt"}, "The reason why VAT is not charged"),
    ({"currency": "BGN"}, "A currency that is in use today"),
    ({"currency": "KWD"}, "Electronic invoices have amounts of two decimals at most."),
    ({"status": "voided"}, "A voided invoice has no electronic invoice."),
]


@pytest.mark.parametrize(("changes", "lack"), LACKS)
def test_what_the_standard_requires_and_the_invoice_lacks_is_named(
    changes: dict[str, Any], lack: str
) -> None:
    category = changes.get("category", "")
    invoice = an_invoice(a_line(vat_rate="0" if category else "19", category=category))
    parties = {"seller": SELLER, "customer": CUSTOMER}
    values = {
        name: replace(parties[name], **value) if name in parties else value
        for name, value in changes.items()
        if name != "category"
    }

    assert missing(replace(invoice, **values)) == [lack]


def test_page_and_command_offer_the_xml_or_say_what_it_lacks(
    client: Client, ann: User, tmp_path: Path
) -> None:
    draft = Draft(CUSTOMER, (TEA,), "EUR", due_date=date(2099, 1, 1))
    whole, other = (
        issue_invoice(draft, account=ann.pk, seller=seller)
        for seller in (SELLER, replace(SELLER, country=""))
    )
    file = tmp_path / "invoice.xml"

    def printed(invoice: Invoice) -> tuple[str, str, int]:
        return run("invoicexml", "--user", "ann", invoice.label, "-o", str(file))

    assert f"/invoices/{whole.label}.xml" in client.get(f"/invoices/{whole.label}/").text
    sent = client.get(f"/invoices/{whole.label}.xml")
    assert sent["Content-Disposition"] == f'attachment; filename="{whole.label}.xml"'
    assert printed(whole) == ("", "", 0)
    assert sent.content == file.read_bytes() == as_xml(whole)
    assert "The seller’s country" in client.get(f"/invoices/{other.label}/").text
    assert client.get(f"/invoices/{other.label}.xml").status_code == 404
    error = "CommandError: The electronic invoice also needs: The seller’s country.\n"
    assert printed(other) == ("", error, 1)


# Within PDFs, read back by another library --------------------------------------------------------

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

    # The XML follows the standard: see above.
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
    [attached] = strictly_read(WITH_XML).root_object["/AF"]  # type: ignore[misc]
    file = attached.get_object()

    assert (file["/AFRelationship"], file["/F"], file["/UF"]) == ("/Alternative", *[XML_NAME] * 2)
    assert file["/EF"]["/F"]["/Subtype"] == "/text/xml"
    assert "/ModDate" in file["/EF"]["/F"]["/Params"]


def test_the_metadata_names_the_standard_and_keeps_its_other_entries(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "pypdf"):
        reader = strictly_read(WITH_XML)
        without = strictly_read(samples.an_invoice())
        metadata = metadata_of(reader)

    # pypdf has nothing to correct.
    assert caplog.messages == []
    found = {item.tag: item.text for item in metadata.iter(f"{{{FX}}}*")}
    assert found == {
        f"{{{FX}}}DocumentFileName": "factur-x.xml",
        f"{{{FX}}}DocumentType": "INVOICE",
        f"{{{FX}}}Version": "1.0",
        f"{{{FX}}}ConformanceLevel": "EN 16931",
    }
    [namespace] = (item for item in metadata.iter(f"{SCHEMA}namespaceURI") if item.text == FX)
    schema = namespace.getparent()
    assert schema.getparent().tag == f"{RDF}Bag"
    assert schema.findtext(f"{SCHEMA}prefix") == "fx"
    described = {f"{{{FX}}}{item.text}" for item in schema.iter(f"{PROPERTY}name")}
    assert described == set(found)
    others = {item.tag for item in metadata.iter("{*}*")} - set(found)
    assert others == {item.tag for item in metadata_of(without).iter("{*}*")}
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
