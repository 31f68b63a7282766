"""Folders of files to upload: a new one every few seconds."""

from __future__ import annotations

import random
from pathlib import Path

from tests.uploads.samples import content
from uploads.contents import MIB

EVERY_SECONDS = 10.0
FILES = 10
#: One of so many batches has a file that is uploaded in parts.
LARGE_EVERY = 8


def make(root: Path, chance: random.Random) -> Path:
    """Make the next folder; it appears with all its files at once."""
    number = len(list(root.glob("batch-*")))
    hidden = root / f".batch-{number:04}"
    hidden.mkdir()
    for each in range(FILES):
        size = chance.choice([0, 1, chance.randrange(50_000)])
        (hidden / f"{each}.log").write_bytes(content(size, (number, each, chance.random())))
    if number % LARGE_EVERY == LARGE_EVERY - 1:
        (hidden / "large.log").write_bytes(content(9 * MIB + chance.randrange(MIB), number))
    return hidden.rename(root / f"batch-{number:04}")
