"""How files are cut into parts. The size of a file alone decides, so equal files are cut alike.

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
"""

from __future__ import annotations

from collections.abc import Iterator

MIB = 1024 * 1024

#: A file up to this size goes up whole, a larger one in parts of at least this size.
PART_BYTES = 8 * MIB

MOST_PARTS = 10_000


def is_small(size: int) -> bool:
    """Whether a file of `size` bytes goes up whole."""
    return size <= PART_BYTES


def part_bytes(size: int) -> int:
    """How large the parts of a file of `size` bytes are, but for the last: whole MiB."""
    smallest = -(-size // MOST_PARTS)
    return max(PART_BYTES, -(-smallest // MIB) * MIB)


def parts_of(size: int) -> Iterator[tuple[int, int]]:
    """The offset and the length of each part of a file of `size` bytes."""
    length = part_bytes(size)
    for offset in range(0, size, length):
        yield offset, min(length, size - offset)
