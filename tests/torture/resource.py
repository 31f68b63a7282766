"""The resource that a lock protects: a number that accepts no lower fencing token."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture.checkers.locks import Served


class StaleFence(Exception):
    """The resource has seen a higher fencing token."""


class Resource:
    """A file with a line for each write that was accepted and for each fencing token seen.

    Each line is one `write` to the end of it, so a killed writer leaves whole lines.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, fence: int) -> int:
        """The number; no lower fencing token is accepted from now on. Raises StaleFence."""
        with self._locked(fence) as (descriptor, number):
            os.write(descriptor, f"{fence} {number} seen\n".encode())
            return number

    def write(self, fence: int, number: int) -> None:
        """Store a number. Raises StaleFence."""
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
        """The accepted writes, in their order."""
        lines = (line.split() for line in self._path.read_text().splitlines())
        return [
            Served(int(fence), int(number)) for fence, number, what in lines if what == "written"
        ]
