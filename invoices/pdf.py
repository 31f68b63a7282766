"""An invoice as a PDF: A4, embedded fonts, the same bytes each time while its status is the same.

It is in the language that the seller issued it in, whoever looks at it.

    title · date                 a voided one: a banner with date and reason, VOID across each page
    seller        customer
    description   quantity   unit price   VAT %   net      the heading repeated on each page
                                   net, VAT per rate, gross
    note
    number                       page 1 of n               at the foot of each page

Numbers of a column stand with their decimal points below each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import zip_longest

from django.utils import translation
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from invoices.documents import Invoice, Party
from invoices.fonts import printable
from invoices.money import bare_amount, bare_price, readable_amount, readable_decimal
from invoices.typesetting import (
    BOTTOM,
    GREY,
    LEFT,
    RIGHT,
    Colour,
    Flow,
    Style,
    Text,
    Watermark,
    paint,
)

_RED: Colour = (0.75, 0.1, 0.1)
_PINK: Colour = (0.97, 0.9, 0.9)

_TITLE = Style(20, 26)
_BODY = Style(9, 13)
_STRONG = replace(_BODY, weight="bold")
_LABEL = Style(7.5, 12, colour=GREY)
_BANNER = replace(_STRONG, colour=_RED)
_SUM = Style(11, 16, weight="bold")
_WATERMARK = Style(190, 190, weight="bold", colour=_PINK)

_GAP = 16.0
_DESCRIPTION_MIN_WIDTH = 150.0
_TOTALS_MIN_WIDTH = 210.0
# A line of the table up to this many lines of text stays on one page.
_KEPT_LINES = 8


def render(invoice: Invoice) -> bytes:
    """`invoice` as a PDF file.

    A character that no font has is printed as U+FFFD; `fonts.missing_characters` finds them before.
    """
    with translation.override(invoice.language):
        flow = Flow()
        _write_head(flow, invoice)
        _write_parties(flow, invoice.seller, invoice.customer)
        _write_lines(flow, invoice)
        _write_totals(flow, invoice)
        _write_note(flow, invoice.note)
        for number, page in enumerate(flow.pages, 1):
            page += _foot(invoice, number, len(flow.pages))
        return paint(
            flow.pages,
            title=invoice.label,
            author=printable(invoice.seller.name),
            language=invoice.language,
            watermark=Watermark(_void(), _WATERMARK) if invoice.is_voided else None,
        )


def _void() -> str:
    return pgettext("across the PDF of a voided invoice", "VOID")


def _day(day: date) -> str:
    # In English as in the files of old, so that these stay the same, byte for byte.
    return date_format(day, pgettext("a date on the PDF, in Django’s letters", "Y-m-d"))


def _title(invoice: Invoice) -> str:
    return _("Invoice %(number)s") % {"number": invoice.label}


def _write_head(flow: Flow, invoice: Invoice) -> None:
    flow.write(LEFT, _title(invoice), _TITLE)
    flow.down(20)
    label = _("Date")
    flow.write(LEFT, label, _LABEL)
    flow.write(LEFT + max(26, _LABEL.width(label) + 8), _day(invoice.issued_at), _BODY)
    if invoice.is_voided:
        flow.down(28)
        flow.rule(colour=_RED)
        flow.down(16)
        flow.write(LEFT, _banner(invoice), _BANNER)
        reason = _("Reason: %(reason)s") % {"reason": invoice.void_reason}
        for line in _BODY.wrapped(reason, RIGHT - LEFT):
            flow.down(_BODY.leading)
            flow.write(LEFT, line, _BODY)
        flow.down(9)
        flow.rule(colour=_RED)
    flow.down(34)


def _banner(invoice: Invoice) -> str:
    if not invoice.voided_on:
        return _("VOID: this invoice was voided.")
    day = _day(invoice.voided_on)
    return _("VOID: this invoice was voided on %(date)s.") % {"date": day}


def _write_parties(flow: Flow, seller: Party, customer: Party) -> None:
    middle = (LEFT + RIGHT) / 2
    width = middle - LEFT - _GAP
    flow.write(LEFT, _("Seller"), _LABEL)
    flow.write(middle, _("Customer"), _LABEL)
    for left, right in zip_longest(_party(seller, width), _party(customer, width)):
        flow.down(_BODY.leading)
        for x, line in ((LEFT, left), (middle, right)):
            if line:
                flow.write(x, *line)
    # The heading of the table and some lines come with it.
    flow.down(38, keep=130)


def _party(party: Party, width: float) -> Iterator[tuple[str, Style]]:
    vat_id = _("VAT ID %(vat_id)s") % {"vat_id": party.vat_id} if party.vat_id else ""
    for text, style in ((party.name, _STRONG), (party.address, _BODY), (vat_id, _BODY)):
        for line in style.wrapped(text, width):
            yield line, style


@dataclass(frozen=True)
class _Column:
    """Numbers below each other by their decimal points; the column ends at `right`."""

    title: str
    cells: Sequence[str]
    style: Style
    right: float = RIGHT

    @property
    def width(self) -> float:
        return max(_LABEL.width(self.title), self._whole_width + self._decimals_width)

    @property
    def _whole_width(self) -> float:
        return max((self.style.width(cell.partition(".")[0]) for cell in self.cells), default=0)

    @property
    def _decimals_width(self) -> float:
        return max((self.style.width(_decimals(cell)) for cell in self.cells), default=0)

    def placed(self) -> list[tuple[float, str]]:
        """Where each cell begins, and the cell."""
        point = self.right - self._decimals_width
        return [(point - self.style.width(cell.partition(".")[0]), cell) for cell in self.cells]


def _decimals(number: str) -> str:
    whole, *_rest = number.partition(".")
    return number[len(whole) :]


def _columns(invoice: Invoice, style: Style) -> list[_Column]:
    """The numbers of the lines, from left to right, placed at the right margin."""
    currency, lines = invoice.currency, invoice.lines
    named = {"currency": currency}
    titles_and_cells = {
        _("Quantity"): [readable_decimal(line.quantity) for line in lines],
        _("Unit price, %(currency)s") % named: [
            bare_price(line.unit_price, currency) for line in lines
        ],
        _("VAT %"): [readable_decimal(line.vat_rate) for line in lines],
        _("Net, %(currency)s") % named: [
            bare_amount(line.net(currency), currency) for line in lines
        ],
    }
    columns: list[_Column] = []
    right = RIGHT
    for title, cells in reversed(titles_and_cells.items()):
        column = _Column(title, cells, style, right)
        columns.insert(0, column)
        right -= column.width + _GAP
    return columns


def _fitting_columns(invoice: Invoice) -> list[_Column]:
    """The numbers in the size of the text, or smaller where they would push it out."""
    style = _BODY
    while True:
        columns = _columns(invoice, style)
        if columns[0].right - columns[0].width - LEFT >= _DESCRIPTION_MIN_WIDTH or style.size < 3:
            return columns
        style = replace(style, size=style.size * 0.9)


def _write_lines(flow: Flow, invoice: Invoice) -> None:
    columns = _fitting_columns(invoice)
    width = columns[0].right - columns[0].width - _GAP - LEFT

    def heading() -> None:
        flow.write(LEFT, _("Description"), _LABEL)
        for column in columns:
            flow.write_to(column.right, column.title, _LABEL)
        flow.y -= 7
        flow.rule()
        flow.y -= 14

    heading()
    flow.heading = heading
    rows = zip(invoice.lines, *(column.placed() for column in columns), strict=True)
    for row, (line, *numbers) in enumerate(rows):
        text = _BODY.wrapped(line.description, width) or [""]
        if row:
            kept = len(text) if len(text) <= _KEPT_LINES else 2
            flow.down(_BODY.leading + 4, keep=(kept - 1) * _BODY.leading)
        flow.write(LEFT, text[0], _BODY)
        for x, number in numbers:
            flow.write(x, number, columns[0].style)
        for each in text[1:]:
            flow.down(_BODY.leading)
            flow.write(LEFT, each, _BODY)
    flow.heading = None


def _write_totals(flow: Flow, invoice: Invoice) -> None:
    currency, totals = invoice.currency, invoice.totals
    rows = [(_("Net"), readable_amount(totals.net, currency), _BODY)]
    for share in totals.shares:
        label = _("VAT %(rate)s%% on %(net)s") % {
            "rate": readable_decimal(share.rate),
            "net": readable_amount(share.net, currency),
        }
        rows.append((label, readable_amount(share.vat, currency), _BODY))
    rows.append((_("Total"), readable_amount(totals.gross, currency), _SUM))
    width = max(style.width(label) + _GAP + style.width(value) for label, value, style in rows)
    left = max(LEFT, RIGHT - max(width, _TOTALS_MIN_WIDTH))

    flow.down(22, keep=sum(style.leading + 3 for *_texts, style in rows))
    flow.rule(left)
    for label, value, style in rows:
        flow.down(style.leading + 3)
        flow.write(left, label, style)
        flow.write_to(RIGHT, value, style)


def _write_note(flow: Flow, note: str) -> None:
    lines = _BODY.wrapped(note, RIGHT - LEFT)
    if not lines:
        return
    flow.down(40, keep=2 * _BODY.leading)
    flow.write(LEFT, _("Note"), _LABEL)
    for line in lines:
        flow.down(_BODY.leading)
        flow.write(LEFT, line, _BODY)


def _foot(invoice: Invoice, number: int, count: int) -> list[Text]:
    y = BOTTOM - 34
    page = _("Page %(number)s of %(count)s") % {"number": number, "count": count}
    name = f"{_title(invoice)} · {_void()}" if invoice.is_voided else _title(invoice)
    return [
        Text(LEFT, y, name, _LABEL),
        Text(RIGHT - _LABEL.width(page), y, page, _LABEL),
    ]
