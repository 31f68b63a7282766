"""What uploading would do, without a write to the table or the bucket."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from dynamo.batches import READ_MAX_ITEMS, read_batches
from uploads import s3
from uploads.contents import Large, are_equal
from uploads.destination import Destination
from uploads.exceptions import UploadError, printable
from uploads.files import Source, Unusable
from uploads.models import DONE, UploadItem
from uploads.reading import opened
from uploads.run import Outcome, Result
from uploads.running import Summary
from uploads.storing import ADOPTED, STORED_BEFORE


def preview_files(
    sources: Iterable[Source | Unusable],
    destination: Destination,
    *,
    workers: int = 8,
    on_result: Callable[[Result], object],
    stop: threading.Event,
) -> Summary:
    """What would become of each source, as table, bucket and disk are now.

    Costs 1 request per 100 files, 1 read unit for each file, and a HeadObject for each that the
    table does not know; a file that is in the table or in the bucket is read, and an object may
    have to be downloaded for the comparison.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
    """
    began = time.monotonic()
    counts: Counter[Outcome] = Counter()
    size_bytes = 0
    coming = iter(sources)
    with ThreadPoolExecutor(workers) as pool:
        while not stop.is_set() and (batch := list(islice(coming, READ_MAX_ITEMS))):
            for result in _previewed(batch, destination, pool, stop):
                counts[result.outcome] += 1
                size_bytes += result.size if result.outcome == "uploaded" else 0
                on_result(result)
    return Summary(
        uploaded=counts["uploaded"],
        skipped=counts["skipped"],
        conflicts=counts["conflict"],
        failed=counts["failed"],
        bytes=size_bytes,
        seconds=time.monotonic() - began,
    )


@dataclass(frozen=True)
class _Job:
    source: Source
    destination: Destination
    key: str
    row: UploadItem | None


def _previewed(
    batch: list[Source | Unusable],
    destination: Destination,
    pool: ThreadPoolExecutor,
    stop: threading.Event,
) -> Iterator[Result]:
    keys = {each: destination.key_for(each.relative) for each in batch if isinstance(each, Source)}
    urls = {destination.url_for(key) for key in keys.values()}
    rows = {
        row["key"]["S"]: UploadItem.from_raw_data(row)
        for row in read_batches(UploadItem.table(), [{"key": {"S": url}} for url in urls])
    }
    jobs = [
        _Job(source, destination, key, rows.get(destination.url_for(key)))
        for source, key in keys.items()
    ]
    for unusable in batch:
        if isinstance(unusable, Unusable):
            yield Result(unusable.name, "", "failed", 0, unusable.reason)
    for result in pool.map(lambda job: None if stop.is_set() else _judged(job), jobs):
        if result is not None:
            yield result


def _judged(job: _Job) -> Result:
    try:
        outcome, reason = _outcome_of(job)
    except UploadError as error:
        outcome, reason = "failed", str(error).rstrip(".")
    return Result(printable(job.source.path), job.key, outcome, job.source.size, reason)


def _outcome_of(job: _Job) -> tuple[Outcome, str]:
    """What `uploads.storing` would make of the file."""
    with opened(job.source.path) as file:
        contents = Large(file)
        if job.row is not None and job.row.state == DONE:
            if (job.row.size, job.row.sha256) == (contents.size, contents.sha256):
                return "skipped", STORED_BEFORE
            return "conflict", "another file was stored under this key"
        found = s3.head(job.destination.bucket, job.key)
        if found is None:
            return "uploaded", ""
        if are_equal(contents, found, job.destination.bucket, job.key):
            return "skipped", ADOPTED
        return "conflict", "another object has this key"
