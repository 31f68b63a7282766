"""The catalogues of site and library: taken from the sources, renewed and compiled, all by Babel.

Django's own commands do the same by the programs of GNU gettext, which few machines have. Run as a
program (`make messages`) it renews them; the tests ask whether there is anything to renew.
"""

import gettext
import io
import re
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
#: Those that are not the sources' own.
LANGUAGES = ("ja",)

#: Each folder of catalogues, and the apps that may have something to translate.
FOLDERS = {
    ROOT / "locale": ("invoices", "project", "staff"),
    # Part of the wheel.
    ROOT / "accounts/locale": ("accounts",),
    ROOT / "dynamo/locale": ("dynamo", "locks", "outbox", "sequences", "uploads"),
}
#: The templates of the site.
TEMPLATES = ROOT / "templates"
#: The catalogues, as people write them.
CATALOGUES = [
    folder / language / "LC_MESSAGES/django.po" for folder in FOLDERS for language in LANGUAGES
]

#: Catalogues with the texts of documents alone, which people write by hand.
DOCUMENTS = [ROOT / "locale" / language / "LC_MESSAGES/django.po" for language in ("de", "fr")]

# What our sources call gettext's functions, and where each has its texts.
_KEYWORDS = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|%[sd]|</?\w+[^>]*>")


def extracted(path: Path) -> Catalog:
    """All that the sources of a catalogue say to people, untranslated."""
    catalogue = Catalog()
    for source in _sources(path.parents[2]):
        name = str(source.relative_to(ROOT))
        for _line, text, _comments, context in _texts_of(source):
            # Without lines, which change with every edit above them.
            catalogue.add(text, locations=[(name, 0)], context=context)
    return catalogue


def read(path: Path) -> Catalog:
    """A catalogue as it stands."""
    with path.open("rb") as file:
        return read_po(file, locale=path.parts[-3], domain="django")


def renewed(path: Path) -> Catalog:
    """A catalogue with every text of its sources, and with no other."""
    catalogue = read(path)
    catalogue.update(extracted(path), no_fuzzy_matching=True, update_creation_date=False)
    catalogue.obsolete.clear()
    return catalogue


def written(catalogue: Catalog) -> bytes:
    """A catalogue as its file holds it."""
    file = io.BytesIO()
    write_po(file, catalogue, width=100, sort_output=True, include_lineno=False)
    return file.getvalue()


def compiled(catalogue: Catalog) -> bytes:
    """A catalogue as programs read it."""
    file = io.BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def messages(mo: bytes) -> dict[object, str]:
    """What a compiled catalogue says, but for its head, which names the version of Babel."""
    found = dict(gettext.GNUTranslations(io.BytesIO(mo))._catalog)  # type: ignore[attr-defined]
    del found[""]
    return found


def placeholders(text: str) -> list[str]:
    """What is filled in into `text`, and its markup, in one order for all languages."""
    return sorted(_PLACEHOLDER.findall(text))


def texts(message: Message) -> tuple[list[str], list[str]]:
    """The texts of a message, and their translations."""
    sources = [message.id] if isinstance(message.id, str) else list(message.id)
    targets = [message.string] if isinstance(message.string, str) else list(message.string)
    return sources, targets


def _sources(folder: Path) -> Iterator[Path]:
    for app in FOLDERS[folder]:
        yield from sorted((ROOT / app).rglob("*.py"))
        templates = (ROOT / app).rglob("templates/**/*.*")
        yield from sorted(path for path in templates if path.suffix in {".html", ".txt"})
    if TEMPLATES.parent == folder.parent:
        yield from sorted(path for path in TEMPLATES.rglob("*.*") if path.is_file())


def _texts_of(path: Path) -> Iterator[tuple]:
    source = path.read_text()
    if path.suffix != ".py":
        # What Django makes of a template are calls between blanked text, whose indents are none.
        calls = templatize(source, str(path))
        source = "\n".join(line.strip() for line in calls.splitlines())
    return extract("python", io.BytesIO(source.encode()), keywords=_KEYWORDS)


if __name__ == "__main__":
    for item in CATALOGUES:
        new = renewed(item)
        item.write_bytes(written(new))
        item.with_suffix(".mo").write_bytes(compiled(new))
    for document in DOCUMENTS:
        document.with_suffix(".mo").write_bytes(compiled(read(document)))
