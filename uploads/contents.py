"""The contents of a file: reading them from disk, cutting them into parts, checksums as in S3.

Only the size of a file decides how it is cut, so equal files have equal checksums.

Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html (sizes),
https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html (checksums)
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from uploads.exceptions import FileChanged, Unreadable

MIB = 1024 * 1024

#: A file up to this size is uploaded whole, a larger one in parts of at least this size.
PART_BYTES = 8 * MIB

MOST_PARTS = 10_000

#: The number of bytes that are read and sent at a time.
CHUNK_BYTES = MIB // 4

# O_NONBLOCK: opening a pipe that replaced the file would wait for a writer.
_READ = os.O_RDONLY | os.O_NONBLOCK
# O_PATH, on Linux, opens a folder that may be entered but not read.
_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
#: The system's error codes for a link where a file or a folder was expected.
_REPLACED = {errno.ELOOP, errno.ENOTDIR}


def is_small(size: int) -> bool:
    """Whether a file of `size` bytes is uploaded whole."""
    return size <= PART_BYTES


def part_bytes(size: int) -> int:
    """The size of each part, except the last, of a file of `size` bytes: whole MiB."""
    smallest = -(-size // MOST_PARTS)
    return max(PART_BYTES, -(-smallest // MIB) * MIB)


def parts_of(size: int) -> Iterator[tuple[int, int]]:
    """The offset and the length of each part of a file of `size` bytes."""
    length = part_bytes(size)
    for offset in range(0, size, length):
        yield offset, min(length, size - offset)


def sha256_of(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return _base64(digest.digest())


def crc32_of(chunks: Iterable[bytes]) -> str:
    crc = 0
    for chunk in chunks:
        crc = zlib.crc32(chunk, crc)
    return _base64(crc.to_bytes(4, "big"))


def composite_of(sha256s: Sequence[str]) -> str:
    """The SHA-256 over the parts' digests, as S3 shows it for an object uploaded in parts."""
    digest = hashlib.sha256(b"".join(map(b64decode, sha256s))).digest()
    return f"{_base64(digest)}-{len(sha256s)}"


def is_composite(checksum: str) -> bool:
    """Whether a checksum is one over parts: base64 does not contain `-`."""
    return "-" in checksum


def _base64(digest: bytes) -> str:
    return b64encode(digest).decode()


class OpenFile:
    """A regular file, open for reading. Threads may share it: each read names its offset.

    Every method that reads raises `FileChanged` if the file was written to in the meantime, and
    `Unreadable` if it cannot be read.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._opened_as = os.fstat(descriptor)
        self._data: bytes | None = None
        self.path = path
        self.size = self._opened_as.st_size

    def read_whole(self) -> bytes:
        """All bytes. Later reads use this copy, so later changes of the file do not matter."""
        # The file is read at once, because joining pieces would need memory for two copies.
        data = self.read_at(0, self.size) if self.size else b""
        if len(data) < self.size:
            data += b"".join(self.chunks(len(data), self.size - len(data)))
        self.assert_unchanged()
        self._data = data
        return data

    def chunks(self, offset: int, length: int) -> Iterator[bytes]:
        """The `length` bytes from `offset` on, piece by piece."""
        end = offset + length
        while offset < end:
            chunk = self.read_at(offset, min(CHUNK_BYTES, end - offset))
            offset += len(chunk)
            yield chunk

    def read_at(self, offset: int, length: int) -> bytes:
        """Between 1 and `length` bytes from `offset` on."""
        chunk = self._read(offset, length)
        if not chunk:
            raise FileChanged(self.path)
        return chunk

    def _read(self, offset: int, length: int) -> bytes:
        if self._data is not None:
            return self._data[offset : offset + length]
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise Unreadable(self.path, error.strerror or str(error)) from error

    def assert_unchanged(self) -> None:
        """Check that the file has not changed since it was opened, and ends at its size.

        Raises:
            FileChanged: it was written to, renamed, linked, or given other permissions. These
                changes cannot be told from a write whose modification time was set back.
            Unreadable: it has bytes beyond its size, as files in /proc have.
        """
        if self._data is not None:
            return
        beyond = self._read(self.size, 1)
        if _identity(os.fstat(self._descriptor)) != _identity(self._opened_as):
            raise FileChanged(self.path)
        if beyond:
            raise Unreadable(self.path, f"it has more than the {self.size:,} bytes of its size")

    def sha256_over(self, parts: Iterable[tuple[int, int]]) -> str:
        """The checksum over parts, each given by offset and length. Reads the file."""
        return composite_of([sha256_of(self.chunks(*part)) for part in parts])

    @cached_property
    def sha256(self) -> str:
        """The checksum in the form of the table, which is over parts if the file is large.

        Reads the file.
        """
        if is_small(self.size):
            checksum = sha256_of(self.chunks(0, self.size))
        else:
            checksum = self.sha256_over(parts_of(self.size))
        self.assert_unchanged()
        return checksum


class Span:
    """A part of a file as a request body for botocore, which may rewind it to send it again."""

    def __init__(self, file: OpenFile, offset: int, length: int) -> None:
        self._file = file
        self._offset = offset
        self._length = length
        self._at = 0

    def __len__(self) -> int:
        return self._length

    @property
    def sha256(self) -> str:
        """The checksum of these bytes. Reads them."""
        return sha256_of(self._file.chunks(self._offset, self._length))

    def read(self, _size: int = -1) -> bytes:
        """The next bytes, b"" at the end. Returns more at a time than http.client asks for."""
        left = self._length - self._at
        if not left:
            return b""
        chunk = self._file.read_at(self._offset + self._at, min(left, CHUNK_BYTES))
        self._at += len(chunk)
        return chunk

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._length}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at


@contextmanager
def opened(path: str, real: str | None = None) -> Iterator[OpenFile]:
    """Open a file for the block: the absolute path `real`, in which no symbolic link is followed.

    Without `real`, `path` is opened, and links are followed.

    Raises:
        Unreadable: it does not exist, may not be read, is not a regular file, or a symbolic link
            has replaced it or a folder of its path.
    """
    try:
        descriptor = (
            os.open(os.fsencode(path), _READ) if real is None else _open_without_links(real)
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        if real is not None and isinstance(error, OSError) and error.errno in _REPLACED:
            reason = "it or its folder was replaced, perhaps by a symbolic link"
        raise Unreadable(path, reason or str(error)) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable(path, "it is not a regular file")
        yield OpenFile(descriptor, path)
    finally:
        os.close(descriptor)


def _open_without_links(path: str) -> int:
    # O_NOFOLLOW concerns only the last name of a path. Therefore, each folder is opened inside the
    # previous one.
    *folders, name = os.fsencode(path).split(b"/")[1:]
    folder = os.open(b"/", _ENTER)
    try:
        for item in folders:
            inner = os.open(item, _ENTER, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, _READ | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    # A writer can set the modification time back, but not the change time.
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
