"""The PDFs of pages, mails and exports: made by the helper process (`web.helper`), then kept.

The same invoice has the same bytes until our code, a catalogue, a font or a package changes. So the
bytes have a name that is known before they are made.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections import OrderedDict
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from django.conf import settings

from dynamo.extending import PerProcess
from invoices.document.fonts import installed
from invoices.document.invoice import Invoice
from invoices.output.pdf import render
from web.helper import computed

#: The PDFs that a process keeps, all together: 400 usual ones.
MOST_BYTES = 16 * 1024 * 1024

_SITE = Path(__file__).parents[2]


def name_of(invoice: Invoice) -> str:
    """A name of the PDF's bytes: 64 hex digits."""
    return hashlib.sha256(f"{_version()} {invoice!r}".encode()).hexdigest()


@cache
def _version() -> str:
    """What the bytes depend on besides the invoice, looked up once per process (50 ms)."""
    folders = ("project/formats", "invoices", "web")
    code = [*(_SITE / folder for folder in folders), *settings.LOCALE_PATHS]
    digest = hashlib.sha256()
    for file in sorted(file for folder in code for file in folder.rglob("*.*")):
        if file.suffix in {".py", ".typ", ".xml", ".mo"}:
            digest.update(file.read_bytes())
    fonts = [(file.name, file.stat().st_size) for each in installed() for file in each.files()]
    packages = sorted((each.name, each.version) for each in distributions())
    return repr((digest.hexdigest(), fonts, packages, sys.version, settings.TIME_ZONE))


def pdf_of(invoice: Invoice, *, keep: bool = True) -> bytes:
    """`invoice` as a PDF file, see `render`; the kept one, if there is one.

    An export does not `keep` its files, which would displace those of all others.

    Raises:
        Busy: see `web.helper.computed`, with its other errors.
    """
    name, kept = name_of(invoice), _kept()
    content = kept.get(name)
    if content is None:
        content = computed(render, invoice)
        if keep:
            kept.put(name, content)
    return content


class _Kept:
    """The files that were used last. Thread-safe."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, name: str) -> bytes | None:
        with self._lock:
            if name in self._files:
                self._files.move_to_end(name)
            return self._files.get(name)

    def put(self, name: str, content: bytes) -> None:
        with self._lock:
            self._bytes += len(content) - len(self._files.pop(name, b""))
            self._files[name] = content
            while self._bytes > MOST_BYTES:
                _name, oldest = self._files.popitem(last=False)
                self._bytes -= len(oldest)


_kept = PerProcess(_Kept)
