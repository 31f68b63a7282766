"""Text for a terminal: escaped text of unknown origin, and counts."""


def printable(text: str) -> str:
    """`text` in one line, with control characters and invalid Unicode escaped.

    Use it for text of unknown origin, which could otherwise control the terminal.
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )


def quantity(count: int, noun: str, plural: str = "") -> str:
    """`1 guard`, `2 guards`, `1,000 guards`. A `plural` is only needed if it does not end in s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
