"""Processes that take locks.

    python -m tests.lock_workers hold NAME LEASE_SECONDS
    python -m tests.lock_workers claim PREFIX COUNT

`hold` prints the fencing token and then answers each line of its standard input: `check`, `write
FILE TEXT` (to a resource that compares fencing tokens) and `end`, which ends the process without
releasing the lease. `claim` prints which of PREFIX0, PREFIX1 … it was the first to claim.
"""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import programs
from tests.forked import Forked


class StaleFence(Exception):
    """The resource has seen a higher fencing token."""


class FencedFile:
    """A number in a file that refuses fencing tokens lower than the highest it has seen."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, fence: int) -> int:
        """Return the number. From then on lower fencing tokens are refused."""
        with self._locked(fence) as (number, store):
            store(number)
            return number

    def write(self, fence: int, number: int) -> None:
        """Store another number."""
        with self._locked(fence) as (_number, store):
            store(number)

    @contextmanager
    def _locked(self, fence: int) -> Iterator[tuple[int, Any]]:
        with self._path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            highest, number = map(int, (file.read() or "0 0").split())
            if fence < highest:
                raise StaleFence

            def store(number: int) -> None:
                file.truncate(0)
                file.write(f"{fence} {number}")
                file.flush()

            yield number, store


@contextmanager
def started(*arguments: object, count: int = 1) -> Iterator[list[Forked]]:
    """Start `count` workers, and kill them at the end of the block."""
    workers = [
        programs.start("tests.lock_workers", *arguments, stdin=True, stderr=False)
        for _ in range(count)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def ask(worker: Forked, line: str) -> str:
    """Send a line to a worker and return its answer."""
    assert worker.stdin is not None
    worker.stdin.write(f"{line}\n")
    return heard(worker)


def heard(worker: Forked) -> str:
    """The next line that a worker prints."""
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def hold(name: str, lease_seconds: str) -> None:
    from locks._internal.lock import Lock
    from locks.exceptions import LeaseLost

    lease = Lock(name, lease_seconds=float(lease_seconds)).acquire()
    say(lease.fence)
    for line in sys.stdin:
        what, *arguments = line.split()
        if what == "end":
            return
        try:
            if what == "check":
                lease.check()
            else:
                FencedFile(Path(arguments[0])).write(lease.fence, int(arguments[1]))
        except (LeaseLost, StaleFence) as error:
            say(type(error).__name__)
        else:
            say("fine")


def claim(prefix: str, count: str) -> None:
    from locks._internal.lock import claim_once

    names = [f"{prefix}{number}" for number in range(int(count))]
    say(json.dumps([name for name in names if claim_once(name)]))


def main() -> None:
    """Set Django up and do the work."""
    import django

    django.setup()
    kind, *arguments = sys.argv[1:]
    {"hold": hold, "claim": claim}[kind](*arguments)


if __name__ == "__main__":
    main()
