"""Children that are forked, not started: they have all that the process had."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

#: After so long a child that hangs is ended.
CHILD_SECONDS = 120


def in_a_child(work: Callable[[], object]) -> int:
    """Do it in a fork of this process; the exit code, 0 where it came to its end."""
    pid = os.fork()
    if not pid:
        signal.alarm(CHILD_SECONDS)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
