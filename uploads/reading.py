"""Files as they are read: opened once, and found out when they are written to meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from uploads import checksums
from uploads.exceptions import FileChanged, Unreadable
from uploads.sizes import MIB, is_small, parts_of

#: How much is read, and sent, at a time.
CHUNK_BYTES = MIB // 4


class OpenFile:
    """A regular file, open for reading. Safe in threads: each read says where."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._before = os.fstat(descriptor)
        self.path = path
        self.size = self._before.st_size

    def read_whole(self) -> bytes:
        """All of it, in memory.

        Raises:
            FileChanged: it was written to while it was read.
            Unreadable: it could not be read to its end, or has none where its size says.
        """
        # At once: put together from pieces, it would be in memory twice.
        data = self.read_at(0, self.size) if self.size else b""
        if len(data) < self.size:
            data += b"".join(self.chunks(len(data), self.size - len(data)))
        self.assert_unchanged()
        return data

    def chunks(self, offset: int, length: int) -> Iterator[bytes]:
        """The `length` bytes from `offset` on, bit by bit. Raises as `read_whole`."""
        end = offset + length
        while offset < end:
            chunk = self.read_at(offset, min(CHUNK_BYTES, end - offset))
            offset += len(chunk)
            yield chunk

    def read_at(self, offset: int, length: int) -> bytes:
        """Some of the `length` bytes from `offset` on, one at least. Raises as `read_whole`."""
        chunk = self._read(offset, length)
        if not chunk:
            raise FileChanged(self.path)
        return chunk

    def _read(self, offset: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise Unreadable(self.path, error.strerror or str(error)) from error

    def assert_unchanged(self) -> None:
        """Return where the file is as it was when it was opened, and ends at its size.

        Raises:
            FileChanged: it was written to; or it was renamed, linked or given other rights, which
                nobody can tell from a change whose time was put back.
            Unreadable: it has bytes beyond its size, as the files of /proc have.
        """
        beyond = self._read(self.size, 1)
        if _identity(os.fstat(self._descriptor)) != _identity(self._before):
            raise FileChanged(self.path)
        if beyond:
            raise Unreadable(self.path, f"it has more than the {self.size:,} bytes of its size")

    @property
    def sha256(self) -> str:
        """Its checksum as the table keeps it: over its parts, where it goes up in parts.

        Reads all of it. Raises as `read_whole`.
        """
        if is_small(self.size):
            return checksums.sha256_of(self.chunks(0, self.size))
        return checksums.composite_of(
            [checksums.sha256_of(self.chunks(*part)) for part in parts_of(self.size)]
        )


class Span:
    """A part of a file as botocore takes a body: read, and read again where it is repeated."""

    def __init__(self, file: OpenFile, offset: int, length: int) -> None:
        self._file = file
        self._offset = offset
        self._length = length
        self._at = 0

    def __len__(self) -> int:
        return self._length

    @property
    def sha256(self) -> str:
        """The checksum of these bytes. Reads them; raises as `OpenFile.read_whole`."""
        return checksums.sha256_of(self._file.chunks(self._offset, self._length))

    def read(self, _size: int = -1) -> bytes:
        """The next bytes, b"" at the end: more of them than http.client asks for at a time."""
        left = self._length - self._at
        if not left:
            return b""
        chunk = self._file.read_at(self._offset + self._at, min(left, CHUNK_BYTES))
        self._at += len(chunk)
        return chunk

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place, for a repetition."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._length}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """Where we are."""
        return self._at


@contextmanager
def opened(path: str) -> Iterator[OpenFile]:
    """The file, open as long as the block.

    Raises:
        Unreadable: it is not there, or not ours to read, or no regular file.
    """
    try:
        # A pipe that took the file's place since it was found would make us wait for its writer.
        descriptor = os.open(os.fsencode(path), os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise Unreadable(path, reason or str(error)) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable(path, "it is no regular file")
        yield OpenFile(descriptor, path)
    finally:
        os.close(descriptor)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    # Whoever writes can put the time of the last write back, but not that of the last change.
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )
