"""Many invoices as one CSV or one ZIP."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest

from invoices.documents import Invoice, Party
from invoices.exports import COLUMNS, as_csv, as_zip
from invoices.pdf import render
from tests.invoices.samples import a_line, a_voided_invoice, an_invoice


def rows_of(*invoices: Invoice) -> list[dict[str, str]]:
    text = b"".join(as_csv(invoices)).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_table_has_a_row_for_each_invoice() -> None:
    issued = an_invoice(a_line("1.5", "100"), a_line("-1", "1000", "7"))

    assert rows_of(issued, a_voided_invoice(number=43)) == [
        dict(
            zip(
                COLUMNS,
                (
                    "2026-000042",
                    "2026-11-21",
                    "issued",
                    "株式会社山田商店",
                    "EUR",
                    "-850.00",
                    "-41.50",
                    "-891.50",
                    "",
                ),
                strict=True,
            )
        ),
        dict(
            zip(
                COLUMNS,
                (
                    "2026-000043",
                    "2026-11-21",
                    "voided",
                    "株式会社山田商店",
                    "EUR",
                    "100.00",
                    "19.00",
                    "119.00",
                    "Wrong customer",
                ),
                strict=True,
            )
        ),
    ]


@pytest.mark.parametrize(
    ("currency", "net"), [("JPY", "100"), ("EUR", "100.00"), ("KWD", "100.000")]
)
def test_amounts_have_the_decimals_of_their_currency(currency: str, net: str) -> None:
    assert rows_of(an_invoice(currency=currency))[0]["net"] == net


def test_spreadsheets_are_told_that_it_is_utf_8() -> None:
    assert b"".join(as_csv([])).startswith(b"\xef\xbb\xbfnumber,date,")


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "＠x"]
)
def test_no_text_is_a_formula(text: str) -> None:
    [row] = rows_of(a_voided_invoice(customer=Party(text), void_reason=text))

    assert row["customer"] == f"'{text}"
    assert row["void reason"] == f"'{text}"


def test_no_text_is_a_formula_where_semicolons_end_a_cell() -> None:
    [row] = rows_of(an_invoice(customer=Party("Bob; =cmd|'/C calc'!A0;-1;b")))

    assert row["customer"] == "Bob;' =cmd|'/C calc'!A0;'-1;b"


def test_commas_quotes_and_lines_stay_in_their_cell() -> None:
    name = 'Ann "A", Bob\nand Co'

    assert rows_of(an_invoice(customer=Party(name)))[0]["customer"] == name


def test_a_zip_holds_each_invoice_as_its_pdf_dated_by_its_issue_date() -> None:
    invoices = [an_invoice(), a_voided_invoice(number=43)]

    with zipfile.ZipFile(io.BytesIO(b"".join(as_zip(invoices)))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["2026-000042.pdf", "2026-000043.pdf"]
        for invoice, entry in zip(invoices, archive.infolist(), strict=True):
            assert archive.read(entry) == render(invoice)
            assert entry.date_time == (2026, 11, 21, 0, 0, 0)


def test_a_zip_is_the_same_each_time() -> None:
    assert b"".join(as_zip([an_invoice()])) == b"".join(as_zip([an_invoice()]))


def test_a_zip_of_nothing_is_a_zip() -> None:
    with zipfile.ZipFile(io.BytesIO(b"".join(as_zip([])))) as archive:
        assert archive.namelist() == []


def test_an_invoice_older_than_zip_is_dated_as_early_as_zip_can() -> None:
    old = replace(an_invoice(), issued_at=date(1975, 2, 3))

    with zipfile.ZipFile(io.BytesIO(b"".join(as_zip([old])))) as archive:
        assert archive.infolist()[0].date_time == (1980, 2, 3, 0, 0, 0)


def test_a_zip_is_sent_while_it_is_made() -> None:
    drawn = []

    def invoices() -> Iterator[Invoice]:
        for number in range(1, 6):
            drawn.append(number)
            yield an_invoice(number=number)

    pieces = as_zip(invoices())

    for sent in range(1, 6):
        assert next(pieces).startswith(b"PK\x03\x04")
        assert drawn == list(range(1, sent + 1))
    # What is left is the directory alone.
    assert len(next(pieces)) < 1000
    assert next(pieces, None) is None
