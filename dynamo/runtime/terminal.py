"""Text for a terminal: of unknown origin, and with numbers."""


def printable(text: str) -> str:
    """`text` in one line, with control characters and invalid Unicode escaped.

    Use it for text of unknown origin, which could otherwise control the terminal.
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )


def quantity(count: int, noun: str, plural: str = "") -> str:
    """`1 guard`, `2 guards`, `1,000 guards`; another `plural` than with an s is named."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
