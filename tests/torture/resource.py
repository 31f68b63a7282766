"""What a lock protects: a number that is counted up, and looks at fences."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture.checkers.locks import Served


class StaleFence(Exception):
    """The resource has seen a higher fencing token."""


class Resource:
    """Its file has a line for each write that it accepted, and one for each fence it has seen.

    Each line is one `write` to the end of it, so that a killed writer spoils none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, fence: int) -> int:
        """The number; from then on no lower fence is served. Raises StaleFence."""
        with self._locked(fence) as (descriptor, number):
            os.write(descriptor, f"{fence} {number} seen\n".encode())
            return number

    def write(self, fence: int, number: int) -> None:
        """Store another number. Raises StaleFence."""
        with self._locked(fence) as (descriptor, _number):
            os.write(descriptor, f"{fence} {number} written\n".encode())

    @contextmanager
    def _locked(self, fence: int) -> Iterator[tuple[int, int]]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            end = os.fstat(descriptor).st_size
            tail = os.pread(descriptor, 200, max(0, end - 200)).decode().splitlines()
            highest, number = map(int, tail[-1].split()[:2]) if tail else (0, 0)
            if fence < highest:
                raise StaleFence
            yield descriptor, number
        finally:
            os.close(descriptor)

    def served(self) -> list[Served]:
        """The writes that it accepted."""
        lines = (line.split() for line in self._path.read_text().splitlines())
        return [
            Served(int(fence), int(number)) for fence, number, what in lines if what == "written"
        ]
