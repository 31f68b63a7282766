"""What is to be stored: files found on disk, and names found that cannot be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A file to be stored.

    `path`: where it is, as `os.fsdecode` returns it (bytes that are no UTF-8 are surrogates).
    `relative`: its name below the destination's prefix, with `/` between folders. `size`: in
    bytes, when it was found; what is stored is what is there when it is read.
    """

    path: str
    relative: str
    size: int


@dataclass(frozen=True)
class Unusable:
    """Something that was named or found and cannot be stored: a failure, with the rest still done.

    `name` is fit to print, and `reason` a sentence without its full stop.
    """

    name: str
    reason: str
