"""Files and folders to upload, and modes that prevent reading them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534

#: Valid file names with characters that are special in shells, URLs or XML.
NAMES = [
    "a name with  spaces ",
    "plus+and=100%, %2F and %25",
    "#hash?query&amp;",
    "<xml>'\"",
    "日本語 👩‍👩‍👧‍👦.txt",
    "new\nline\ttab",
    "-rf",
    "..two dots",
    "back\\slash",
    "decomposed e\u0301",
    "composed \u00e9",
    "~tilde-_.!*()",
]


def write(file: Path, text: str = "x") -> Path:
    """The file, with its folders."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@contextmanager
def without_privileges() -> Iterator[None]:
    """Run without the rights of root, who can read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)
