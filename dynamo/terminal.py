"""What commands read from a command line, and print on a terminal."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from django.core.management.base import CommandError

#: How many unreadable items are named.
NAMED = 10


def positive(text: str) -> int:
    """The type of an argument that is an integer of at least 1."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def printable(text: str) -> str:
    """`text` in one line, with control characters and invalid Unicode escaped.

    For text of unknown origin: it could otherwise control the terminal.
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )


def unreadable(kind: str, keys: Sequence[str]) -> CommandError:
    """The error of a command that skipped damaged items of a `kind` (`account`) with these keys."""
    named = ", ".join(printable(key) for key in keys[:NAMED])
    more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
    noun = kind if len(keys) == 1 else f"{kind}s"
    return CommandError(f"{len(keys)} damaged {noun} could not be read: {named}{more}.")
