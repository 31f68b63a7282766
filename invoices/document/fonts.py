"""The fonts that the PDFs embed, and which characters they can print.

The files come from PyPI packages that are never imported, and from Debian packages if these are
installed. All have the SIL Open Font License 1.1. A character is set in the first font that has it,
so a font of the machine prints only what no font of `requirements.lock` has, and other invoices
have the same bytes everywhere.

`characters.json` has the first and the last code point of each range of characters that a family
has, so that a form can reject a character without starting Typst. `python -m tests.fonts` writes it
from the files.
"""

import hashlib
import json
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from django.conf import settings

from invoices.document.money import LEFT_TO_RIGHT_MARK, WORD_JOINER


@dataclass(frozen=True)
class Family:
    """A font family, and where to find it.

    There are two files, for the regular and the bold weight, or one file with all weights.
    """

    name: str
    #: Module and file of PyPI packages, which every site has.
    wheels: tuple[tuple[str, str], ...] = ()
    #: Otherwise, the Debian package and its files. It may be missing.
    debian: str = ""
    debian_files: tuple[str, ...] = ()

    @property
    def script(self) -> str:
        """The first word of the Unicode names of its letters."""
        return self.name.rpartition(" ")[2].upper()

    def files(self) -> list[Path]:
        """The installed files, the regular weight first; empty if there are none.

        Raises:
            ModuleNotFoundError: a package of `wheels` is not installed.
        """
        paths = [_in_package(*place) for place in self.wheels]
        paths += [Path(settings.INVOICES_FONT_FOLDER, name) for name in self.debian_files]
        return paths if all(map(Path.is_file, paths)) else []


def _of_noto_core(script: str) -> Family:
    weights = (f"NotoSans{script}-Regular.ttf", f"NotoSans{script}-Bold.ttf")
    return Family(f"Noto Sans {script}", (), "fonts-noto-core", weights)


_EMOJI = Family("Noto Color Emoji", (), "fonts-noto-color-emoji", ("NotoColorEmoji.ttf",))

#: The fonts, in the order in which they are searched for a character.
FAMILIES = (
    # Latin, Greek, Cyrillic, Devanagari.
    Family("Noto Sans", (("fontpkg_noto_sans", "files/NotoSans[wdth,wght].ttf"),)),
    # Japanese, Chinese, Korean, symbols.
    Family(
        "Noto Sans CJK JP",
        (
            ("noto_cjk_sans_jp_regular", "NotoSansCJKjp-Regular.otf"),
            ("noto_cjk_sans_jp_bold", "NotoSansCJKjp-Bold.otf"),
        ),
    ),
    Family(
        "Noto Sans Arabic", (("fontpkg_noto_sans_arabic", "files/NotoSansArabic[wdth,wght].ttf"),)
    ),
    _of_noto_core("Hebrew"),
    Family("Noto Sans Thai", (("fontpkg_noto_sans_thai", "files/NotoSansThai[wdth,wght].ttf"),)),
    _of_noto_core("Armenian"),
    _of_noto_core("Bengali"),
    _of_noto_core("Georgian"),
    _of_noto_core("Tamil"),
    _EMOJI,
)
_CHARACTERS = Path(__file__).with_name("characters.json")

#: Printed in place of a character that no font has.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_LINE_ENDS_AND_TABS = "\n\r\t"
# Invisible characters of `invoices.document.money`, and variation selectors. They are left out, so
# that text copied from the PDF is what people read.
_WITHOUT_GLYPH = dict.fromkeys(map(ord, (LEFT_TO_RIGHT_MARK, WORD_JOINER))) | dict.fromkeys(
    range(0xFE00, 0xFE10)
)
# Persian and Indic names and some emoji contain the joiners.
_INVISIBLE_BUT_PRINTED = {
    "\N{ZERO WIDTH NON-JOINER}",
    "\N{ZERO WIDTH JOINER}",
    "\N{RIGHT-TO-LEFT MARK}",
}
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_MARKED = re.compile(".[\u0300-\u036f\u3099\u309a]+")
_LIKELY_EMOJI = re.compile("[\u2600-\u27bf\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]")


@cache
def installed() -> tuple[Family, ...]:
    """The families whose files are installed, looked up once per process.

    Raises:
        ModuleNotFoundError: see `Family.files`.
    """
    return tuple(family for family in FAMILIES if family.files())


def font_folders() -> list[Path]:
    """The folders of the font files.

    Debian has all its fonts in one folder, and some of them would replace those of the wheels.
    Therefore, the needed files are linked into a separate folder.
    """
    of_wheels = [path for item in installed() if item.wheels for path in item.files()]
    of_debian = [path for item in installed() if item.debian for path in item.files()]
    folders = list(dict.fromkeys(path.parent for path in of_wheels))
    return [*folders, _folder_of_links(of_debian)] if of_debian else folders


def _folder_of_links(files: list[Path]) -> Path:
    """A folder with links to `files`. The processes of a system user share it.

    Raises:
        PermissionError: another user made a folder of this name.
    """
    digest = hashlib.sha256("\n".join(map(str, files)).encode()).hexdigest()
    folder = Path(tempfile.gettempdir(), f"invoice-fonts-{os.getuid()}-{digest[:32]}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user of this machine: delete it.")
    for path in files:
        with suppress(FileExistsError):
            (folder / path.name).symlink_to(path)
    return folder


def missing_characters(text: str) -> str:
    """The characters of `text` that cannot be printed, each once and in order.

    Line ends and tabs can be printed. An error message shows the others by `as_shown`.
    """
    return "".join(dict.fromkeys(char for char, fits in _checked(_composed(text)) if not fits))


def as_shown(char: str) -> str:
    """`char` for an error message; an invisible one is shown as its code point."""
    category = unicodedata.category(char)
    if category in _UNSEEN or char.isspace():
        return f"U+{ord(char):04X}"
    if category[0] == "M":
        return "\N{DOTTED CIRCLE}" + char
    # The character is isolated, so that letters of scripts from right to left keep their order.
    return f"\N{FIRST STRONG ISOLATE}{char}\N{POP DIRECTIONAL ISOLATE}"


def packages_for(characters: str) -> list[str]:
    """The packages that are not installed and have fonts for some of `characters`."""
    absent = {family.script: family.debian for family in FAMILIES if family not in installed()}
    return list(
        dict.fromkeys(absent[script] for script in map(_script, characters) if script in absent)
    )


def _script(char: str) -> str:
    if _LIKELY_EMOJI.match(char):
        return _EMOJI.script
    return unicodedata.name(char, "").partition(" ")[0]


def printable(text: str) -> str:
    """`text` as it is printed: composed, with U+FFFD for every missing character."""
    composed = _composed(text).replace("\t", " ").translate(_WITHOUT_GLYPH)
    return "".join(char if fits else REPLACEMENT for char, fits in _checked(composed))


def _composed(text: str) -> str:
    # Only letters with marks are composed. NFC of the whole text would also change some kanji of
    # names.
    return _MARKED.sub(lambda marked: unicodedata.normalize("NFC", marked[0]), text)


def _checked(text: str) -> Iterator[tuple[str, bool]]:
    """Each character, and whether it can be printed."""
    before = _fonts_with(REPLACEMENT)
    for char in text:
        fonts = _fonts_with(char)
        if unicodedata.category(char)[0] == "M":
            # A mark is set in the font of its letter.
            fonts &= before
        yield char, bool(fonts)
        before = fonts or _fonts_with(REPLACEMENT)


@lru_cache(0x10000)
def _fonts_with(char: str) -> frozenset[int]:
    """The positions of the installed families that print `char`."""
    if char in _LINE_ENDS_AND_TABS or ord(char) in _WITHOUT_GLYPH:
        return frozenset(range(len(installed())))
    if unicodedata.category(char) in _UNSEEN and char not in _INVISIBLE_BUT_PRINTED:
        return frozenset()
    return frozenset(n for n, known in enumerate(_coverage()) if ord(char) in known)


@cache
def _coverage() -> list[frozenset[int]]:
    """The characters of each installed family, read once per process (some milliseconds)."""
    ranges = json.loads(_CHARACTERS.read_text(encoding="utf-8"))
    return [
        frozenset(chain.from_iterable(range(first, last + 1) for first, last in ranges[name]))
        for name in (family.name for family in installed())
    ]


def _in_package(package: str, file: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"The font package {package!r} is not installed.")
    return Path(spec.origin).parent / file
