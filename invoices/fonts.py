"""The fonts that our PDFs embed, and which characters can be printed with them.

They come from PyPI packages that are installed for these files alone and never imported:

    DejaVu Sans    of matplotlib           Latin, Greek, Cyrillic   Bitstream Vera licence
    IPAex Gothic   of matplotlib-fontja    Japanese                 IPA Font License 1.0

Both licences allow embedding in documents. A character is set in the first font that has it; there
is no bold Japanese, so that is set in the regular one. What needs shaping (Arabic, Hebrew, Thai…)
reportlab cannot print, even where a font has the letters.
"""

from __future__ import annotations

import os
import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from invoices.money import LEFT_TO_RIGHT_MARK, WORD_JOINER

if TYPE_CHECKING:
    from reportlab.pdfbase.ttfonts import TTFont

Weight = Literal["regular", "bold"]

#: Stands for each character that cannot be printed.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_FILES = {
    "DejaVuSans": ("matplotlib", "mpl-data/fonts/ttf/DejaVuSans.ttf"),
    "DejaVuSans-Bold": ("matplotlib", "mpl-data/fonts/ttf/DejaVuSans-Bold.ttf"),
    "IPAexGothic": ("matplotlib_fontja", "fonts/ipaexg.ttf"),
}
_FALLBACKS: dict[Weight, tuple[str, ...]] = {
    "regular": ("DejaVuSans", "IPAexGothic"),
    "bold": ("DejaVuSans-Bold", "DejaVuSans", "IPAexGothic"),
}

_LINE_ENDS_AND_TABS = "\n\r\t"
# Invisible signs of `invoices.money`, without meaning in a line that is never reordered.
_WITHOUT_GLYPH = {ord(LEFT_TO_RIGHT_MARK): None, ord(WORD_JOINER): None}
# Reportlab writes the code points of other planes into its ToUnicode map with five digits, which
# no reader understands: such text could be neither searched nor copied. Emoji live there.
_LAST_CODE_POINT = 0xFFFF
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_RIGHT_TO_LEFT = {"R", "AL", "AN"}

# Marks that a font has composed with their letter, or that stand over it by their own width.
_MARKS = "\u0300-\u036f\u3099\u309a"
_MARK = re.compile(f"[{_MARKS}]")
_MARKED = re.compile(f".[{_MARKS}]+")


class Typeface:
    """Fonts of one weight that stand in for each other."""

    def __init__(self, fonts: Sequence[TTFont]) -> None:
        self._fonts = fonts
        self._chosen: dict[str, TTFont] = {}
        self._advances: dict[str, float] = {}

    @property
    def first(self) -> str:
        """The name of the font that most text is set in."""
        return self._fonts[0].fontName

    def has(self, char: str) -> bool:
        """Whether one of the fonts has this character."""
        return any(ord(char) in font.face.charToGlyph for font in self._fonts)

    def runs(self, text: str) -> Iterator[tuple[str, str]]:
        """`text` cut where the font changes: (name of the font, piece) in order."""
        for font, chars in groupby(text, key=self._font_of):
            yield font.fontName, "".join(chars)

    def width(self, text: str, size: float) -> float:
        """How wide `text` stands, in points."""
        return size * sum(map(self._advance, text))

    def _font_of(self, char: str) -> TTFont:
        font = self._chosen.get(char)
        if font is None:
            owners = (font for font in self._fonts if ord(char) in font.face.charToGlyph)
            font = self._chosen[char] = next(owners, self._fonts[0])
        return font

    def _advance(self, char: str) -> float:
        advance = self._advances.get(char)
        if advance is None:
            advance = self._advances[char] = self._font_of(char).stringWidth(char, 1)
        return advance


def missing_characters(text: str) -> str:
    """The characters of `text` that cannot be printed, each once, in order; empty where all can.

    Line ends and tabs are no such characters. Some of these are invisible or reorder their
    neighbours: show them as code points.
    """
    composed = _composed(text)
    return "".join(char for char in dict.fromkeys(composed) if not _is_printable(char))


def printable(line: str) -> str:
    """One line of text as it is set: composed, with a sign for whatever cannot be printed."""
    composed = _composed(line).replace("\t", " ").translate(_WITHOUT_GLYPH)
    return "".join(char if _is_printable(char) else REPLACEMENT for char in composed)


def is_mark(char: str) -> bool:
    """Whether `char` stands over the character before it, so that both stay on one line."""
    return _MARK.match(char) is not None


def typeface(weight: Weight) -> Typeface:
    """The fonts of a weight, loaded once per process, on first use (0.4 s)."""
    if not _typefaces:
        with _loading:
            if not _typefaces:
                _load()
    return _typefaces[weight]


_typefaces: dict[Weight, Typeface] = {}
_loading = threading.Lock()


def _begin_anew() -> None:
    """In a forked child, whose parent's other threads are gone: one may have held the lock."""
    global _loading
    _loading = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


def _load() -> None:
    # A tenth of a second, which commands and most pages need not wait for.
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    fonts = {name: TTFont(name, str(_path(*place))) for name, place in _FILES.items()}
    for font in fonts.values():
        pdfmetrics.registerFont(font)
    # All at once: whoever looks without the lock finds every weight, or none.
    _typefaces.update(
        {weight: Typeface([fonts[name] for name in names]) for weight, names in _FALLBACKS.items()}
    )


def _path(package: str, file: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"The fonts of the package {package!r} are missing.")
    return Path(spec.origin).parent / file


def _composed(text: str) -> str:
    # Only letters with marks: to compose everything would also change some kanji of names.
    return _MARKED.sub(lambda marked: unicodedata.normalize("NFC", marked[0]), text)


@lru_cache(_LAST_CODE_POINT)
def _is_printable(char: str) -> bool:
    if char in _LINE_ENDS_AND_TABS or ord(char) in _WITHOUT_GLYPH:
        return True
    if ord(char) > _LAST_CODE_POINT or unicodedata.category(char) in _UNSEEN:
        return False
    direction = unicodedata.bidirectional(char)
    if direction in _RIGHT_TO_LEFT or (direction == "NSM" and not is_mark(char)):
        return False
    return typeface("regular").has(char)
