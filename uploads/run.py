"""What the files of one run share, and how one of them ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Set
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal

from uploads import listing
from uploads.claims import Holder
from uploads.destination import Destination
from uploads.exceptions import Interrupted
from uploads.holding import ProcessLease

Outcome = Literal["uploaded", "skipped", "conflict", "failed"]

# Why a file was skipped, or is a conflict: by what the table knows, and by what the bucket has.
STORED_BEFORE = "it was stored before"
ANOTHER_STORED = "another file was stored under this key"
ADOPTED = "the bucket had it already"
ANOTHER_THERE = "another object has this key"


@dataclass(frozen=True)
class Result:
    """What became of one source. `name` is fit to print; `key` is "" where there is none.

    `reason` says why it was not uploaded, without its full stop; "" where it was.
    """

    name: str
    key: str
    outcome: Outcome
    size: int
    reason: str


@dataclass(frozen=True)
class Ending:
    """What became of a file; `reason` says why it was not uploaded, without its full stop."""

    outcome: Outcome
    size: int
    reason: str = ""


@dataclass(frozen=True)
class Run:
    """What all files of a run share.

    `gone`: the processes whose rows may be taken over. `parts`: the threads that send parts;
    `ahead`: how many parts of one file may wait for them. `halt`: set when all is to end.
    `sent`: is told of bytes that reached S3, from any thread. `reached`: set when S3 has done
    something for the run, so that a failure is one file's.
    """

    destination: Destination
    lease: ProcessLease
    gone: Set[Holder]
    parts: Executor
    ahead: int
    halt: threading.Event
    sent: Callable[[int], None]
    reached: threading.Event

    @property
    def bucket(self) -> str:
        """Where to."""
        return self.destination.bucket

    def go_on(self) -> None:
        """Return while the run goes on.

        Raises:
            Interrupted: it is to end.
        """
        if self.halt.is_set():
            raise Interrupted

    def assert_reachable(self) -> None:
        """Return where S3 has done something for the run, or else shows us the bucket.

        What stops all of it is told once, and not of every file. Costs 1 request to S3 until one is
        answered.

        Raises:
            BucketMissing, StorageFailed: see `uploads.s3`.
        """
        if not self.reached.is_set():
            listing.look_into(self.destination)
            self.reached.set()
