"""A process whose threads issue invoices on one series, for races and stress tests.

    python -m tests.invoice_workers ACCOUNT NAME THREADS COUNT

Its requests have the ids `NAME-<n>` for n below COUNT; for each it prints the id and the number.
Started again it repeats the same requests. A request without an answer is repeated at once.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import django

from tests import programs
from tests.forked import Forked


def main(account: str, name: str, threads: str, count: str) -> None:
    """Issue them all."""
    django.setup()
    from dynamo.exceptions import Unavailable
    from tests.invoice_factories import issued

    def issue_one(number: int) -> None:
        request_id = f"{name}-{number}"
        while True:
            try:
                invoice = issued(account, request_id=request_id, customer=request_id)
            except Unavailable:
                continue
            # One write per line, as threads share the stream.
            sys.stdout.write(f"{request_id} {invoice.number}\n")
            sys.stdout.flush()
            return

    with ThreadPoolExecutor(int(threads)) as pool:
        list(pool.map(issue_one, range(int(count))))


def start(account: str, name: str, *, threads: int, count: int) -> Forked:
    """Start such a process on the engine that this one talks to."""
    return programs.start("tests.invoice_workers", account, name, threads, count, stderr=False)


def answers_of(worker: Forked) -> dict[str, int]:
    """Wait for the end of a process; returns the number of each request id."""
    out, _err = worker.communicate(timeout=500)
    # A process that was killed may have left half a line.
    pairs = (line.split() for line in out.splitlines(keepends=True) if line.endswith("\n"))
    return {request_id: int(number) for request_id, number in pairs}


if __name__ == "__main__":
    main(*sys.argv[1:])
