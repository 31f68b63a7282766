"""Text on pages: lines broken to a width, pages filled from the top, painted as one PDF.

Everything is laid out before anything is painted, so that page 1 knows how many will follow.
Lengths are points; the origin is the lower left corner of an A4 page.
"""

from __future__ import annotations

import io
import os
import threading
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from invoices.fonts import Weight, is_mark, printable, typeface

if TYPE_CHECKING:
    from reportlab.pdfgen.canvas import Canvas

Colour = tuple[float, float, float]

_MILLIMETRE = 72 / 25.4
PAGE_WIDTH, PAGE_HEIGHT = 210 * _MILLIMETRE, 297 * _MILLIMETRE
MARGIN = 56.0
TOP = PAGE_HEIGHT - 60.0
BOTTOM = 70.0
LEFT = MARGIN
RIGHT = PAGE_WIDTH - MARGIN

BLACK: Colour = (0.1, 0.1, 0.1)
GREY: Colour = (0.45, 0.45, 0.45)
HAIRLINE: Colour = (0.78, 0.78, 0.78)

# Japanese typesetting (JIS X 4051): small kana, marks of repetition and closing signs do not
# begin a line, opening ones do not end it. Signs of other scripts are told by their category.
_NEVER_FIRST = frozenset("ー々ゝゞヽヾぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ゛゜")
_CLOSING = {"Pe", "Pf", "Po"}
_OPENING = {"Ps", "Pi"}
_BREAK_AFTER = frozenset("-–—/")
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Style:
    """How text is set: size and distance of lines in points, weight, colour."""

    size: float
    leading: float
    weight: Weight = "regular"
    colour: Colour = BLACK

    def width(self, text: str) -> float:
        """How wide one line of `text` stands."""
        return typeface(self.weight).width(printable(text), self.size)

    def wrapped(self, text: str, width: float) -> list[str]:
        """`text` in lines of at most `width`; broken at spaces, in Japanese between characters,
        and anywhere in a word that is wider than a line."""
        return [
            line
            for paragraph in text.strip().splitlines()
            for line in _lines(printable(paragraph), self, width)
        ]


@dataclass(frozen=True)
class Text:
    """One line of text whose baseline begins at (x, y)."""

    x: float
    y: float
    text: str
    style: Style


@dataclass(frozen=True)
class Rule:
    """A horizontal line."""

    left: float
    right: float
    y: float
    colour: Colour = HAIRLINE


@dataclass
class Flow:
    """Pages being filled; `y` is where the last line stood, `heading` opens each further page."""

    pages: list[list[Text | Rule]] = field(default_factory=lambda: [[]])
    y: float = TOP
    heading: Callable[[], None] | None = None

    def write(self, x: float, text: str, style: Style) -> None:
        """Write from `x` to the right."""
        self.pages[-1].append(Text(x, self.y, text, style))

    def write_to(self, x: float, text: str, style: Style) -> None:
        """Write so that the text ends at `x`."""
        self.write(x - style.width(text), text, style)

    def rule(self, left: float = LEFT, right: float = RIGHT, colour: Colour = HAIRLINE) -> None:
        """Draw a line here."""
        self.pages[-1].append(Rule(left, right, self.y, colour))

    def down(self, distance: float, keep: float = 0) -> None:
        """Go down for the next line, or to the next page where there is no room for it.

        What stands at most `keep` below that line goes with it, up to half a page.
        """
        if self.y - distance - min(keep, (TOP - BOTTOM) / 2) < BOTTOM:
            self.pages.append([])
            self.y = TOP
            if self.heading:
                self.heading()
        else:
            self.y -= distance


@dataclass(frozen=True)
class Watermark:
    """A word across every page, under the text."""

    word: str
    style: Style


def paint(
    pages: list[list[Text | Rule]],
    *,
    title: str,
    author: str,
    language: str,
    watermark: Watermark | None = None,
) -> bytes:
    """The pages as a PDF, its fonts embedded: the same bytes for the same pages."""
    # Not when the site starts: see `invoices.fonts`.
    from reportlab.pdfgen.canvas import Canvas

    paper = io.BytesIO()
    # A font of reportlab reads its file with one cursor, whoever asks.
    with _painting:
        canvas = Canvas(
            paper,
            pagesize=(PAGE_WIDTH, PAGE_HEIGHT),
            pageCompression=1,
            invariant=1,
            lang=language,
            # Else each page names Helvetica, which is not embedded.
            initialFontName=typeface("regular").first,  # type: ignore[arg-type]  # wrong stub
        )
        canvas.setTitle(title)
        canvas.setAuthor(author)
        canvas.setCreator("")
        for page in pages:
            if watermark:
                _paint_watermark(canvas, watermark)
            for mark in page:
                _paint_mark(canvas, mark)
            canvas.showPage()
        canvas.save()
    return paper.getvalue()


_painting = threading.Lock()


def _begin_anew() -> None:
    """In a forked child, whose parent's other threads are gone: one may have held the lock."""
    global _painting
    _painting = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


def _paint_mark(canvas: Canvas, mark: Text | Rule) -> None:
    if isinstance(mark, Text):
        _paint_text(canvas, mark)
        return
    canvas.setLineWidth(0.5)
    canvas.setStrokeColorRGB(*mark.colour)
    canvas.line(mark.left, mark.y, mark.right, mark.y)


def _paint_text(canvas: Canvas, mark: Text) -> None:
    style = mark.style
    line = canvas.beginText(mark.x, mark.y)
    line.setFillColorRGB(*style.colour)
    for font, run in typeface(style.weight).runs(printable(mark.text)):
        line.setFont(font, style.size)
        line.textOut(run)
    canvas.drawText(line)


def _paint_watermark(canvas: Canvas, watermark: Watermark) -> None:
    canvas.saveState()
    canvas.translate(PAGE_WIDTH / 2, PAGE_HEIGHT / 2)
    canvas.rotate(52)
    word, style = watermark.word, watermark.style
    _paint_text(canvas, Text(-style.width(word) / 2, -style.size / 3, word, style))
    canvas.restoreState()


def _lines(text: str, style: Style, limit: float) -> Iterator[str]:
    face = typeface(style.weight)
    line, taken = "", 0.0
    for piece in _pieces(text):
        fits = face.width(piece.rstrip(" "), style.size) <= limit
        for part in [piece] if fits else _characters(piece):
            if line and taken + face.width(part.rstrip(" "), style.size) > limit:
                yield line.rstrip(" ")
                line, taken = "", 0.0
            line += part
            taken += face.width(part, style.size)
    yield line.rstrip(" ")


def _pieces(text: str) -> Iterator[str]:
    """`text` cut wherever a line may break."""
    start = 0
    for here in range(1, len(text) + 1):
        if here == len(text) or _may_break(text[here - 1], text[here]):
            yield text[start:here]
            start = here


def _characters(piece: str) -> Iterator[str]:
    start = 0
    for here in range(1, len(piece) + 1):
        if here == len(piece) or not is_mark(piece[here]):
            yield piece[start:here]
            start = here


@lru_cache(10_000)
def _may_break(before: str, after: str) -> bool:
    if before == " ":
        return after != " "
    if after == " " or _NO_BREAK_SPACE in (before, after) or is_mark(after):
        return False
    if after in _NEVER_FIRST or unicodedata.category(after) in _CLOSING:
        return False
    if unicodedata.category(before) in _OPENING:
        return False
    return _is_wide(before) or _is_wide(after) or (before in _BREAK_AFTER and after.isalpha())


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in ("W", "F")
