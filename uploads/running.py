"""Stores files in S3, each exactly once, by several threads, beside other processes or alone.

    summary = upload_files(sources, Destination.parse("s3://bucket/prefix"), on_result=print)

Any number of processes may be given the same files: each file is claimed by one of them, and each
process ends when every file is stored, conflicting or failed.

Source: "DynamoDBをロックマネージャーとして使う" (uploads to S3 claimed in DynamoDB).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

from uploads import metrics
from uploads.destination import Destination
from uploads.dispatching import Dispatcher
from uploads.files import Source, Unusable
from uploads.holding import LEASE_SECONDS
from uploads.run import Outcome, Result

__all__ = ["LEASE_SECONDS", "Outcome", "Result", "Summary", "upload_files"]


@dataclass(frozen=True)
class Summary:
    """What became of all; `bytes` are those of the files that were uploaded."""

    uploaded: int
    skipped: int
    conflicts: int
    failed: int
    bytes: int
    seconds: float

    @classmethod
    def of(cls, counts: Counter[Outcome], size_bytes: int, seconds: float) -> Self:
        """A run with so many results of each outcome."""
        return cls(
            uploaded=counts["uploaded"],
            skipped=counts["skipped"],
            conflicts=counts["conflict"],
            failed=counts["failed"],
            bytes=size_bytes,
            seconds=seconds,
        )


def _nothing(_told: Any) -> None:
    """For who does not want to know."""


def upload_files(
    sources: Iterable[Source | Unusable],
    destination: Destination,
    *,
    workers: int = 8,
    lease_seconds: float = LEASE_SECONDS,
    on_result: Callable[[Result], None] = _nothing,
    on_bytes: Callable[[int], None] = _nothing,
    stop: threading.Event | None = None,
) -> Summary:
    """Store every source; what became of them.

    `sources` are drawn as workers get free: any number needs no more memory. `on_result` is told
    of each as it ends, `on_bytes` of bytes as they reach S3 (or are found there), part by part;
    for a file that is skipped, conflicts or fails the Result says the rest. Both are called from
    the calling thread alone.

    Once `stop` is set no file is begun; small ones under way are finished, large ones stop between
    two parts, to be resumed by the next run. What was not done has no Result.

    A new small file costs 2 requests, 2 write units and 1 PutObject (see `uploads.storing`), a
    run 1 request and 1 write unit to begin and to end, and as much per quarter of its lease. While
    another process has files that are left, it costs 2 requests a second to wait for it.

    Raises:
        BucketMissing: there is no such bucket.
        StorageFailed: S3 did nothing for the run, nor does it show the bucket.
        TableMissing: a table is not there.
        Unavailable, Rejected: DynamoDB did not let the run begin.
    """
    if workers < 1:
        raise ValueError("It takes one worker at least.")
    began = time.monotonic()
    counts: Counter[Outcome] = Counter()
    size_bytes = 0
    with Dispatcher(sources, destination, workers, lease_seconds, stop, on_bytes) as dispatcher:
        for result in dispatcher.results():
            counts[result.outcome] += 1
            metrics.FILES.labels(result.outcome).inc()
            if result.outcome == "uploaded":
                size_bytes += result.size
                metrics.BYTES.inc(result.size)
            on_result(result)
    return Summary.of(counts, size_bytes, time.monotonic() - began)
