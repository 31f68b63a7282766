"""A dry run: predicts the result of a run without writing to the table or the bucket."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from dynamo import DamagedItem
from dynamo.extending import READ_MAX_ITEMS, CountingPool, Item, read_batches
from uploads.contents import opened
from uploads.exceptions import UploadError
from uploads.models import DONE, UploadItem
from uploads.sources import Destination, Source, Unusable
from uploads.transfer import (
    ADOPTED,
    ANOTHER_STORED,
    ANOTHER_THERE,
    STORED_BEFORE,
    Job,
    Outcome,
    Result,
    Summary,
    is_equal,
)
from web import s3
from web.s3 import StorageFailed


def preview_files(
    sources: Iterable[Source | Unusable],
    destination: Destination,
    *,
    workers: int = 8,
    on_result: Callable[[Result], object],
    stop: threading.Event,
) -> Summary:
    """The result that `upload_files` would have for each source now.

    Costs 1 request per 100 files, 1 read unit per file, and a HeadObject for each file that is not
    in the table. A file that is in the table or in the bucket is read, and an object may have to be
    downloaded. The path and the key of each file that would be uploaded are kept in memory, to
    predict the result of a later file with the same key.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.extending.send`.
    """
    began = time.monotonic()
    summary = Summary()
    remaining = iter(sources)
    preview = _Preview(destination, stop)
    with CountingPool(workers) as pool:
        while not stop.is_set() and (batch := list(islice(remaining, READ_MAX_ITEMS))):
            for result in preview.results(batch, pool):
                summary.add(result)
                on_result(result)
    summary.seconds = time.monotonic() - began
    return summary


class _Preview:
    def __init__(self, destination: Destination, stop: threading.Event) -> None:
        self._destination = destination
        self._stop = stop
        #: The paths of the files that would be uploaded, by their keys.
        self._first_paths: dict[str, str] = {}

    def results(self, batch: list[Source | Unusable], pool: CountingPool) -> Iterator[Result]:
        jobs = [Job(source) for source in batch if isinstance(source, Source)]
        urls = {self._destination.url_for(job.key) for job in jobs}
        rows = {
            row["key"]["S"]: row
            for row in read_batches(UploadItem.table(), [{"key": {"S": url}} for url in urls])
        }
        for source in batch:
            if isinstance(source, Unusable):
                yield Result(source.name, "", "failed", 0, source.reason)

        def preview(job: Job) -> Result | None:
            row = rows.get(self._destination.url_for(job.key))
            return None if self._stop.is_set() else _result(job, lambda: self._outcome(job, row))

        for job, result in zip(jobs, pool.map(preview, jobs), strict=True):
            if result is not None:
                yield self._after_the_first(job, result)

    def _outcome(self, job: Job, item: Item | None) -> tuple[Outcome, str]:
        row = UploadItem.from_raw_data(item) if item is not None else None
        with opened(job.source.path) as file:
            if row is not None and row.state == DONE:
                if (row.size, row.sha256) == (file.size, file.sha256):
                    return "skipped", STORED_BEFORE
                return "conflict", ANOTHER_STORED
            found = s3.head(self._destination.bucket, job.key)
            if found is None:
                file.assert_unchanged()
                return "uploaded", ""
            if is_equal(file, found, self._destination.bucket, job.key):
                return "skipped", ADOPTED
            return "conflict", ANOTHER_THERE

    def _after_the_first(self, job: Job, result: Result) -> Result:
        """The result, if an earlier file with the same key would be uploaded first."""
        if result.outcome != "uploaded":
            return result
        first = self._first_paths.get(job.key)
        if first is not None:
            return _result(job, lambda: _compared(first, job))
        self._first_paths[job.key] = job.source.path
        return result


def _compared(first: str, job: Job) -> tuple[Outcome, str]:
    with opened(first) as earlier, opened(job.source.path) as later:
        if earlier.size == later.size and earlier.sha256 == later.sha256:
            return "skipped", STORED_BEFORE
    return "conflict", ANOTHER_STORED


def _result(job: Job, outcome: Callable[[], tuple[Outcome, str]]) -> Result:
    try:
        kind, reason = outcome()
    except (UploadError, StorageFailed, DamagedItem) as error:
        return job.result("failed", job.source.size, error)
    return job.result(kind, job.source.size, reason)
