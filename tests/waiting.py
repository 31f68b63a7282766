"""Waiting for what another thread or process does, instead of sleeping."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def wait_until(condition: Callable[[], Any], seconds: float = 120) -> None:
    """Wait until it is true. The limit is so long that only a hung program reaches it."""
    ends_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.01)


def catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal. Source: proc(5), SigCgt."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)
