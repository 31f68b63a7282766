"""What commands read from and write to a terminal."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from django.core.management.base import CommandError


def printable(text: str) -> str:
    """The text on one line, with what no terminal should get (and no UTF-8 can say) escaped."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )


def positive(text: str) -> int:
    """A whole number from 1 on; anything else is a usage error."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


#: How many of those that cannot be read are named.
NAMED = 10


def unreadable(kind: str, keys: Sequence[str]) -> CommandError:
    """The complaint of items of a `kind` (`account`) that could not be read, by their `keys`."""
    named = ", ".join(printable(key) for key in keys[:NAMED])
    more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
    noun = kind if len(keys) == 1 else f"{kind}s"
    return CommandError(f"{len(keys)} damaged {noun} could not be read: {named}{more}.")
