"""A process that takes a lock.

    python -m tests.lock_workers NAME LEASE_SECONDS

It prints its fencing token. It answers each line of its standard input with `held` or `lost`, until
the line `end`, after which it ends without releasing its lease.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests import programs
from tests.forked import Forked


@contextmanager
def holding(name: str, lease_seconds: float) -> Iterator[tuple[Forked, int]]:
    """A process that has the lock, and its fencing token; killed at the end of the block."""
    worker = programs.start("tests.lock_workers", name, lease_seconds, stdin=True, stderr=False)
    try:
        yield worker, int(_heard(worker))
    finally:
        worker.kill()
        worker.communicate()


def ask(worker: Forked) -> str:
    """Whether a worker finds its lease `held` or `lost`."""
    assert worker.stdin is not None
    worker.stdin.write("?\n")
    return _heard(worker)


def _heard(worker: Forked) -> str:
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def main(name: str, lease_seconds: str) -> None:
    """Set Django up, take the lock, and answer."""
    import django

    django.setup()
    from locks import LeaseLost, Lock

    lease = Lock(name, lease_seconds=float(lease_seconds)).acquire()
    print(lease.fence, flush=True)
    for line in sys.stdin:
        if line == "end\n":
            return
        try:
            lease.check()
        except LeaseLost:
            print("lost", flush=True)
        else:
            print("held", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
