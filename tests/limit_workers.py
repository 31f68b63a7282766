"""A process whose threads try a password at once, for the race at a limit.

    python -m tests.limit_workers WHO THREADS

It says `ready`, and begins when a line arrives on its standard input. It answers with one line: for
each attempt `checked` where the password was looked at, else `refused`.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import django

from tests import programs
from tests.forked import Forked


def main(who: str, threads: str) -> None:
    """Try a wrong password once in each thread, all together."""
    django.setup()
    from django.contrib.auth import authenticate

    from accounts.exceptions import TooManyAttempts
    from dynamo.client import sending
    from tests.workers import say

    # A slow engine that so many ask at once is no lost reply.
    sending.READ_SECONDS = 60.0
    sending.client()
    together = Barrier(int(threads))

    def attempt(_number: int) -> str:
        together.wait()
        try:
            assert authenticate(username=who, password="wrong password") is None
        except TooManyAttempts:
            return "refused"
        return "checked"

    say("ready")
    sys.stdin.readline()
    with ThreadPoolExecutor(int(threads)) as pool:
        say(json.dumps(list(pool.map(attempt, range(int(threads))))))


def start(who: str, *, threads: int) -> Forked:
    """Start such a process on the engine that this one talks to."""
    return programs.start("tests.limit_workers", who, threads, stdin=True, stderr=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
