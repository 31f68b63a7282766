"""How text that anybody may have written is shown to people."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line, with what no terminal should get (and no UTF-8 can say) escaped."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )
