"""Searching in texts that people typed."""

from __future__ import annotations

from unicodedata import normalize


def folded(text: str) -> str:
    """Equal for texts that people read as the same: `É` in one code point or two, `ｶﾞ` and `ガ`."""
    return normalize("NFKC", normalize("NFKC", text).casefold())
