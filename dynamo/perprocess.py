"""What a process makes once, on first use: its threads share it, a forked child makes its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class PerProcess(Generic[Made]):
    """Called, it is what `make` returned (never None). Made once, for the life of the process."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: Made | None = None
        self._lock = threading.Lock()
        # What is made may hold sockets, and the lock may be held by a thread that a child has not.
        os.register_at_fork(after_in_child=self.reset)

    def __call__(self) -> Made:
        """The one of this process; only its first use takes a lock."""
        made = self._made
        if made is None:
            with self._lock:
                made = self._made
                if made is None:
                    made = self._made = self._make()
        return made

    def made(self) -> Made | None:
        """The one of this process, if it was made."""
        return self._made

    def reset(self) -> None:
        """Forget it; the next use makes a new one."""
        self._made = None
        self._lock = threading.Lock()
