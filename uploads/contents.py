"""What is to be stored, read from disk: whole in memory where it is small, else bit by bit.

Both know their size and their checksum as the table keeps it, and give their bytes again, to be
compared with an object that somebody else may have stored in another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Protocol

from uploads import checksums, s3
from uploads.reading import OpenFile
from uploads.s3 import Found


class Contents(Protocol):
    """The bytes of one file."""

    @property
    def size(self) -> int:
        """How many."""

    @property
    def sha256(self) -> str:
        """Their checksum as the table keeps it; may read the file."""

    def span(self, offset: int, length: int) -> Iterator[bytes]:
        """Some of them."""


@dataclass(frozen=True)
class Small:
    """A file in memory."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    @cached_property
    def sha256(self) -> str:
        return checksums.sha256_of([self.data])

    def span(self, offset: int, length: int) -> Iterator[bytes]:
        yield self.data[offset : offset + length]


class Large:
    """A file on disk, which may yet be written to: see `OpenFile.assert_unchanged`."""

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self.size = file.size

    @cached_property
    def sha256(self) -> str:
        checksum = self.file.sha256
        self.file.assert_unchanged()
        return checksum

    def span(self, offset: int, length: int) -> Iterator[bytes]:
        return self.file.chunks(offset, length)


def are_equal(contents: Contents, found: Found, bucket: str, key: str) -> bool:
    """Whether the object has these bytes, by the strongest that S3 knows of it.

    Its SHA-256; that over its parts, cut as it was; a CRC-32 or SHA-1 of the whole; else it is
    downloaded. Never by the ETag, which is no checksum of every object. Costs no request, 1 for
    the sizes of parts, or the download.

    Raises:
        StorageFailed: S3 did not say enough.
        FileChanged, Unreadable: the file could not be read again.
    """
    if found.size != contents.size:
        return False
    if found.sha256 is not None:
        if found.sha256 == contents.sha256:
            return True
        if not checksums.is_composite(found.sha256):
            return found.sha256 == _whole(contents)
        sizes = s3.part_sizes(bucket, key)
        if sizes and sum(sizes) == contents.size:
            return found.sha256 == _over_parts(contents, sizes)
    everything = contents.span(0, contents.size)
    if found.sha1 is not None:
        return found.sha1 == checksums.sha1_of(everything)
    if found.crc32 is not None:
        return found.crc32 == checksums.crc32_of(everything)
    return checksums.sha256_of(s3.download(bucket, key)) == _whole(contents)


def _whole(contents: Contents) -> str:
    return checksums.sha256_of(contents.span(0, contents.size))


def _over_parts(contents: Contents, sizes: list[int]) -> str:
    offsets = accumulate(sizes, initial=0)
    return checksums.composite_of(
        [
            checksums.sha256_of(contents.span(offset, size))
            for offset, size in zip(offsets, sizes, strict=False)
        ]
    )
