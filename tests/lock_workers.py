"""Processes of their own that take locks.

    python -m tests.lock_workers hold NAME LEASE_SECONDS
    python -m tests.lock_workers count NAME FILE THREADS TIMES
    python -m tests.lock_workers fenced NAME FILE THREADS TIMES LEASE_SECONDS
    python -m tests.lock_workers claim PREFIX COUNT

`hold` says the fence, and then answers each line on its standard input: `check`, `write FILE TEXT`
(to a resource that looks at fences) and `end`, which ends it with the lease in its hands. `count`
adds 1 to the number in a file, again and again, by reading and writing it without any other
protection. `fenced` does the same to a resource that looks at fences, and says how often it
succeeded. `claim` says which of PREFIX0, PREFIX1 … it was the first to claim.
"""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import programs
from tests.forked import Forked


class StaleFence(Exception):
    """The resource has seen a higher fencing token."""


class FencedFile:
    """A number in a file that is read and written under fencing tokens, each checked at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, fence: int) -> int:
        """The number; from then on no lower fence is served."""
        with self._locked(fence) as (number, store):
            store(number)
            return number

    def write(self, fence: int, number: int) -> None:
        """Store another one."""
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
    """So many workers in this process's environment, killed with the block."""
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
    """What a worker answers to a line."""
    assert worker.stdin is not None
    worker.stdin.write(f"{line}\n")
    return heard(worker)


def heard(worker: Forked) -> str:
    """The next line that a worker says."""
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def hold(name: str, lease_seconds: str) -> None:
    from locks.exceptions import LeaseLost
    from locks.lock import Lock

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


def count(name: str, file: str, threads: str, times: str) -> None:
    from locks.lock import Lock

    lock = Lock(name, lease_seconds=60, wait_seconds=500, poll_seconds=0.05)
    path = Path(file)

    def add(_number: int) -> int:
        with lock as lease:
            path.write_text(str(int(path.read_text()) + 1))
            return lease.fence

    with ThreadPoolExecutor(int(threads)) as pool:
        say(json.dumps(list(pool.map(add, range(int(times))))))


def fenced(name: str, file: str, threads: str, times: str, lease_seconds: str) -> None:
    from locks.exceptions import LeaseLost
    from locks.lock import Lock

    lock = Lock(name, lease_seconds=float(lease_seconds), wait_seconds=500, poll_seconds=0.05)
    resource = FencedFile(Path(file))

    def add(_number: int) -> bool:
        written = False
        try:
            with lock as lease:
                number = resource.read(lease.fence)
                lease.check()
                resource.write(lease.fence, number + 1)
                written = True
        except (LeaseLost, StaleFence):
            # After the write it was lost on the way to the release, which spoils nothing.
            pass
        return written

    say("ready")
    with ThreadPoolExecutor(int(threads)) as pool:
        say(sum(pool.map(add, range(int(times)))))


def claim(prefix: str, count: str) -> None:
    from locks.lock import claim_once

    names = [f"{prefix}{number}" for number in range(int(count))]
    say(json.dumps([name for name in names if claim_once(name)]))


def main() -> None:
    """Set Django up and work."""
    import django

    django.setup()
    kind, *arguments = sys.argv[1:]
    {"hold": hold, "count": count, "fenced": fenced, "claim": claim}[kind](*arguments)


if __name__ == "__main__":
    main()
