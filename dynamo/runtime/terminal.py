"""Text for a terminal: escaped text of unknown origin, and counts."""

from collections.abc import Sequence


def printable(text: str) -> str:
    """`text` in one line, with control characters and invalid Unicode escaped.

    Use it for text of unknown origin, which could otherwise control the terminal.
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )


#: How many elements of a list a line shows.
LISTED = 10


def listed(elements: Sequence[object], more: int = 0) -> str:
    """The first elements, and how many there are besides: `1, 2 and 7 more`."""
    more += max(0, len(elements) - LISTED)
    shown = ", ".join(map(str, elements[:LISTED]))
    return f"{shown} and {more:,} more" if more else shown


def quantity(count: int, noun: str, plural: str = "") -> str:
    """`1 guard`, `2 guards`, `1,000 guards`. A `plural` is only needed if it does not end in s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
