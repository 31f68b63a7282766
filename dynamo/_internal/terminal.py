"""Text of unknown origin, printed on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` in one line, with control characters and invalid Unicode escaped.

    For text of unknown origin: it could otherwise control the terminal.
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )
