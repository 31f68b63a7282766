"""Many invoices as one CSV or one ZIP."""

import csv
import io
import os
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from dynamo.runtime.gates import NICENESS
from invoices.document.amounts import totals
from invoices.document.invoice import Customer, Invoice
from invoices.output import helper, pdf
from invoices.output.files import YEAR_FILES, as_zip
from invoices.output.pdf import render
from invoices.store.records import Record
from tests.invoices.samples import a_line, a_voided_invoice, an_invoice, record_of


def rows_of(*invoices: Invoice, ending: str = "csv") -> list[dict[str, str]]:
    text = b"".join(YEAR_FILES[ending](map(record_of, invoices))).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


DOCUMENT = (
    "number,date,type,credits,status,customer,customer number,customer country,customer VAT ID,"
    "currency,"
)
HEADINGS = {
    "csv": "number,date,status,customer,currency,net,vat,gross,void reason,state,paid on,due date,"
    "note,prices include tax,supplied from,supplied to,payment terms,buyer reference,"
    "exemption reason",
    "lines.csv": f"{DOCUMENT}line,description,quantity,unit price,tax category,VAT rate,net,unit",
    "bookings.csv": f"{DOCUMENT}supplied from,supplied to,due date,tax category,VAT rate,net,VAT,"
    "gross",
}


@pytest.mark.parametrize(("ending", "headings"), HEADINGS.items(), ids=HEADINGS)
def test_the_columns_of_a_table_do_not_change_and_new_ones_come_last(
    ending: str, headings: str
) -> None:
    [row] = rows_of(an_invoice(a_line()), ending=ending)

    assert ",".join(row).startswith(headings)


def test_a_table_has_a_row_for_each_invoice() -> None:
    lines = a_line("1.5", "100"), a_line("-1", "1000", "7")
    issued = an_invoice(*lines, note="Thanks\nAnn", supplied_from=date(2026, 11, 1))

    rows = [list(row.values()) for row in rows_of(issued, a_voided_invoice(number=43))]

    assert [";".join(row) for row in rows] == [
        "2026-000042;2026-11-21;issued;株式会社山田商店;EUR;-850.00;-41.50;-891.50;;open;;;"
        "Thanks\nAnn;;2026-11-01;;;;",
        "2026-000043;2026-11-21;voided;株式会社山田商店;EUR;100.00;19.00;119.00;"
        "Wrong customer;voided;;;;;;;;;",
    ]


def test_the_table_of_lines_has_their_rates_and_adds_up_to_the_net_total() -> None:
    lines = (
        replace(a_line("3", "9.99", description="=Tea"), unit="HUR"),
        a_line("1", "100", "7"),
        replace(a_line("7", "0.33"), unit="KGM"),
    )
    sums = totals(lines, "EUR", True)

    rows = rows_of(an_invoice(*lines, prices_include_tax=True, totals=sums), ending="lines.csv")

    # A column that came later is the last one.
    names = ("line", "description", "VAT rate", "net", [*rows[0]][-1])
    assert [[row[name] for name in names] for row in rows] == [
        ["1", "'=Tea", "19", "25.19", "HUR"],
        ["2", "Work", "7", "93.46", ""],
        ["3", "Work", "19", "1.94", "KGM"],
    ]
    assert sum(Decimal(row["net"]) for row in rows) * 100 == sums.net


def test_the_table_of_bookings_has_a_row_for_each_rate_with_zero_for_a_voided_invoice() -> None:
    issued = an_invoice(a_line(), a_line("1", "50", "7"), due_date=date(2026, 12, 21))
    note = an_invoice(a_line("-1"), number=43, credits="2026-000042")

    rows = rows_of(issued, a_voided_invoice(), note, ending="bookings.csv")

    names = ("type", "status", "due date", "tax category", "VAT rate", "net", "VAT", "gross")
    assert [";".join(row[name] for name in names) for row in rows] == [
        "invoice;issued;2026-12-21;standard;7;50.00;3.50;53.50",
        "invoice;issued;2026-12-21;standard;19;100.00;19.00;119.00",
        "invoice;voided;;standard;19;0.00;0.00;0.00",
        "credit note;issued;;standard;19;-100.00;-19.00;-119.00",
    ]
    assert rows[-1]["credits"] == "2026-000042"


BLANKS = ("\u200e", "\u200d", "\u2060", "\ufe0f", "\ufeff \x00\u034f", "\u3164")
#: Texts, and the cells that contain them.
CELLS = {
    **{
        text: f"'{text}"
        for text in (
            *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\rA", "\nA", "  =1", "＝1", "＠x"),
            *(f"{blank}{sign}1" for blank in BLANKS for sign in "=+-@＝"),
        )
    },
    "Bob; =cmd|'/C calc'!A0;-1;b;\u2060+1;": "Bob;' =cmd|'/C calc'!A0;'-1;b;'\u2060+1;",
    **{
        text: text
        for text in ("Ann - Bob", "(+49) 30", "é=1", "1-2", "\u200e", "“=1”", 'Ann "A",\nand Co')
    },
}


def test_text_is_never_a_formula_and_other_text_is_not_changed() -> None:
    invoices = (a_voided_invoice(customer=Customer(text), void_reason=text) for text in CELLS)

    rows = rows_of(*invoices)

    assert [row["customer"] for row in rows] == list(CELLS.values())
    assert [row["void reason"] for row in rows] == list(CELLS.values())


def test_a_zip_contains_each_pdf_with_its_issue_date_and_is_sent_while_it_is_made() -> None:
    # A ZIP has no year before 1980.
    days = {date(2026, 11, 21): 2026, date(1975, 2, 3): 1980}
    invoices = [an_invoice(), a_voided_invoice(number=43, issued_at=[*days][1])]
    drawn: list[Invoice] = []

    def records() -> Iterator[Record]:
        for invoice in invoices:
            drawn.append(invoice)
            yield record_of(invoice)

    pieces = as_zip(records())
    content = b""
    for count in (1, 2):
        content += next(pieces)
        assert drawn == invoices[:count]
    # The last piece is the directory alone.
    [directory] = pieces
    assert len(directory) < 1000
    content += directory
    assert content == b"".join(as_zip(records()))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["2026-000042.pdf", "1975-000043.pdf"]
        for invoice, entry in zip(invoices, archive.infolist(), strict=True):
            assert archive.read(entry) == render(invoice)
            day = invoice.issued_at
            assert entry.date_time == (days[day], day.month, day.day, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all processes are equally nice")
def test_pages_go_before_the_pdfs_of_a_zip_which_are_not_kept() -> None:
    pdf._kept.cache_clear()
    b"".join(as_zip([record_of(an_invoice())]))

    # It does not displace the PDFs that pages keep.
    assert not pdf._kept.cache_info().currsize
    made: Any = helper._helper.made()
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    # A process is at most 19 nice.
    assert os.getpriority(os.PRIO_PROCESS, made.process.pid) == min(ours + NICENESS, 19)
