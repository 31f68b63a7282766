"""What commands that go on past damaged items say of them at the end."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.management.base import CommandError

from dynamo.terminal import printable

#: How many of those that cannot be read are named.
NAMED = 10


def unreadable(kind: str, keys: Sequence[str]) -> CommandError:
    """The complaint of items of a `kind` (`account`) that could not be read, by their `keys`."""
    named = ", ".join(printable(key) for key in keys[:NAMED])
    more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
    noun = kind if len(keys) == 1 else f"{kind}s"
    return CommandError(f"{len(keys)} damaged {noun} could not be read: {named}{more}.")
