"""Searching in texts that people typed."""

from __future__ import annotations

import re
from unicodedata import normalize

# Accents of Latin, Greek and Cyrillic. The marks of other scripts make other letters.
_ACCENTS = re.compile("[\u0300-\u036f]")


def folded(text: str) -> str:
    """Equal for texts that people search alike: `Café` and `CAFE`, `ｶﾞ` and `ガ`."""
    apart = normalize("NFKD", normalize("NFKC", text).casefold())
    return normalize("NFKC", _ACCENTS.sub("", apart))
