"""Starts programs that run during a test: commands, and workers of races and stress tests."""

import os
from collections.abc import Mapping
from typing import IO

from tests.fork_server import fork_server
from tests.forked import Forked


def start(
    program: str,
    *arguments: object,
    stdin: bool = False,
    stderr: bool = True,
    env: Mapping[str, str] | None = None,
    job: bool = False,
) -> Forked:
    """Start `manage.py` or a module by `fork_server`, in a session without a terminal.

    A `job` has a process group of its own in our session, so that it can be stopped.

    Its output is a pipe. Its input and its errors are pipes only if asked for; otherwise it reads
    nothing, and its errors go where ours go.
    """
    nothing = os.open(os.devnull, os.O_RDONLY)
    theirs = [nothing, 1, 2]
    ours: list[IO[str] | None] = [None, None, None]
    for standard, piped in enumerate((stdin, True, stderr)):
        if piped:
            read, write = os.pipe()
            theirs[standard], end = (write, read) if standard else (read, write)
            ours[standard] = os.fdopen(end) if standard else os.fdopen(end, "w", buffering=1)
    words = [str(word) for word in arguments]
    process = fork_server.fork(program, words, theirs, ours=ours, env=env, job=job)
    for descriptor in {nothing, *theirs} - {1, 2}:
        os.close(descriptor)
    return process
