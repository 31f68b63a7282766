"""The fonts that the PDFs embed, and which characters they can print.

The files come from PyPI packages (all SIL Open Font License 1.1) that are never imported:

    Noto Sans            fontpkg-noto-sans                     Latin, Greek, Cyrillic, Devanagari
    Noto Sans CJK JP     noto-cjk-sans-jp-regular and -bold    Japanese, Chinese, Korean, symbols

A character is set in the first font that has it. Both fonts have a regular and a bold weight with
the same characters. This module reads the characters from the files, so that a form can reject a
character without starting Typst.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from bisect import bisect_right
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from invoices.money import LEFT_TO_RIGHT_MARK, WORD_JOINER

#: The families, in the order in which a character is looked for.
FAMILIES = ("Noto Sans", "Noto Sans CJK JP")
# Package and file of each. Noto Sans has all its weights in one file.
_REGULAR = (
    ("fontpkg_noto_sans", "files/NotoSans[wdth,wght].ttf"),
    ("noto_cjk_sans_jp_regular", "NotoSansCJKjp-Regular.otf"),
)
_BOLD = (
    ("fontpkg_noto_sans", "files/NotoSans[wdth,wght].ttf"),
    ("noto_cjk_sans_jp_bold", "NotoSansCJKjp-Bold.otf"),
)

#: Printed in place of a character that no font has.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_LINE_ENDS_AND_TABS = "\n\r\t"
# Invisible characters of `invoices.money`, and variation selectors. They are left out, so that text
# copied from the PDF is what people read.
_WITHOUT_GLYPH = dict.fromkeys(map(ord, (LEFT_TO_RIGHT_MARK, WORD_JOINER))) | dict.fromkeys(
    range(0xFE00, 0xFE10)
)
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# The fonts have some characters of scripts that run from right to left, but not their letters.
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
_MARKED = re.compile(".[\u0300-\u036f\u3099\u309a]+")


def font_folders() -> list[Path]:
    """The folders of the font files."""
    return list(dict.fromkeys(_path(*place).parent for place in _REGULAR + _BOLD))


def missing_characters(text: str) -> str:
    """The characters of `text` that cannot be printed, each once, in order; empty if all can.

    Line ends and tabs can. Some of the returned characters are invisible or reorder their
    neighbors, so show them as code points.
    """
    return "".join(char for char in dict.fromkeys(_composed(text)) if not _is_printable(char))


def printable(text: str) -> str:
    """`text` as it is printed: composed, with U+FFFD for every missing character."""
    composed = _composed(text).replace("\t", " ").translate(_WITHOUT_GLYPH)
    return "".join(char if _is_printable(char) else REPLACEMENT for char in composed)


def _composed(text: str) -> str:
    # Only letters with marks. Composing everything would also change some kanji of names.
    return _MARKED.sub(lambda marked: unicodedata.normalize("NFC", marked[0]), text)


@lru_cache(0x10000)
def _is_printable(char: str) -> bool:
    if char in _LINE_ENDS_AND_TABS or ord(char) in _WITHOUT_GLYPH:
        return True
    if unicodedata.category(char) in _UNSEEN or unicodedata.bidirectional(char) in _RIGHT_TO_LEFT:
        return False
    return any(_has(ranges, ord(char)) for ranges in _coverage())


#: Ranges of code points: the first of each, and the last of each.
Ranges = tuple[list[int], list[int]]


def _has(ranges: Ranges, code_point: int) -> bool:
    firsts, lasts = ranges
    place = bisect_right(firsts, code_point) - 1
    return place >= 0 and code_point <= lasts[place]


@cache
def _coverage() -> list[Ranges]:
    """The characters of each font, read once per process (a few milliseconds)."""
    return [_ranges_of(_path(*place)) for place in _REGULAR]


def _ranges_of(file: Path) -> Ranges:
    """The code points of a font, from format 12 of its `cmap` table.

    https://learn.microsoft.com/en-us/typography/opentype/spec/cmap
    """
    with file.open("rb") as font:
        (tables,) = struct.unpack(">4xH6x", font.read(12))
        directory = dict(struct.iter_unpack(">4s4xI4x", font.read(16 * tables)))
        cmap = directory[b"cmap"]
        font.seek(cmap)
        (subtables,) = struct.unpack(">2xH", font.read(4))
        for platform, encoding, offset in struct.iter_unpack(">HHI", font.read(8 * subtables)):
            if (platform, encoding) in _FULL_UNICODE:
                font.seek(cmap + offset)
                (groups,) = struct.unpack(">12xI", font.read(16))
                rows = list(struct.iter_unpack(">II4x", font.read(12 * groups)))
                return [first for first, _ in rows], [last for _, last in rows]
    raise ValueError(f"{file} does not list all its characters.")


_FULL_UNICODE = {(0, 4), (3, 10)}


def _path(package: str, file: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"The font package {package!r} is not installed.")
    return Path(spec.origin).parent / file
