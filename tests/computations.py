"""Functions that a helper process computes for tests."""

import os
import threading
from pathlib import Path
from typing import Any

from django.conf import settings

_MEGABYTE = 1024 * 1024


def process_id(_number: int = 0) -> int:
    return os.getpid()


def never_end(began: str) -> None:
    """Write the process's id to the file `began`, then wait forever."""
    mark(began)
    threading.Event().wait()


def use_a_core(began: str) -> None:
    mark(began)
    while True:
        pass


def take_memory(megabytes: int) -> int:
    return len(bytes(bytearray(megabytes * _MEGABYTE)))


def fail() -> None:
    raise LookupError("of no use")


def unknown_setting(name: str) -> Any:
    return getattr(settings, name, None)


def environment() -> list[str]:
    return sorted(os.environ)


def mark(path: str) -> None:
    """Write the process's id to a file, which is whole when it exists."""
    part = Path(f"{path}.part")
    part.write_text(str(os.getpid()))
    part.rename(path)
