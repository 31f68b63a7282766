"""What uploading would do, without a write to the table or the bucket."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from dynamo.batches import READ_MAX_ITEMS, read_batches
from dynamo.exceptions import DamagedItem
from dynamo.models import Item
from dynamo.tally import CountingPool
from dynamo.terminal import printable
from uploads import s3
from uploads.contents import Large, are_equal
from uploads.destination import Destination
from uploads.exceptions import UploadError
from uploads.files import Source, Unusable
from uploads.models import DONE, UploadItem
from uploads.reading import opened
from uploads.run import (
    ADOPTED,
    ANOTHER_STORED,
    ANOTHER_THERE,
    STORED_BEFORE,
    Outcome,
    Result,
)
from uploads.running import Summary


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
    have to be downloaded for the comparison. Of each that would be uploaded the path is kept, some
    300 bytes in all, so that a later one with its key is foretold as well.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
    """
    began = time.monotonic()
    counts: Counter[Outcome] = Counter()
    size_bytes = 0
    coming = iter(sources)
    firsts: _Firsts = {}
    with CountingPool(workers) as pool:
        while not stop.is_set() and (batch := list(islice(coming, READ_MAX_ITEMS))):
            for result in _previewed(batch, destination, pool, stop, firsts):
                counts[result.outcome] += 1
                size_bytes += result.size if result.outcome == "uploaded" else 0
                on_result(result)
    return Summary.of(counts, size_bytes, time.monotonic() - began)


_Firsts = dict[bytes, str]
"""The paths of the files that would be uploaded, by the digests of their keys."""


@dataclass(frozen=True)
class _Job:
    source: Source
    destination: Destination
    key: str
    row: Item | None


def _previewed(
    batch: list[Source | Unusable],
    destination: Destination,
    pool: CountingPool,
    stop: threading.Event,
    firsts: _Firsts,
) -> Iterator[Result]:
    keys = [
        (each, destination.key_for(each.relative)) for each in batch if isinstance(each, Source)
    ]
    urls = {destination.url_for(key) for _source, key in keys}
    rows = {
        row["key"]["S"]: row
        for row in read_batches(UploadItem.table(), [{"key": {"S": url}} for url in urls])
    }
    jobs = [
        _Job(source, destination, key, rows.get(destination.url_for(key))) for source, key in keys
    ]
    for unusable in batch:
        if isinstance(unusable, Unusable):
            yield Result(unusable.name, "", "failed", 0, unusable.reason)
    results = pool.map(lambda job: None if stop.is_set() else _judged(job, _outcome_of), jobs)
    for job, result in zip(jobs, results, strict=True):
        if result is not None:
            yield _beside_the_first(job, result, firsts)


def _judged(job: _Job, judge: Callable[[_Job], tuple[Outcome, str]]) -> Result:
    try:
        outcome, reason = judge(job)
    except (UploadError, DamagedItem) as error:
        outcome, reason = "failed", str(error).rstrip(".")
    return Result(printable(job.source.path), job.key, outcome, job.source.size, reason)


def _outcome_of(job: _Job) -> tuple[Outcome, str]:
    """What `uploads.storing` would make of the file."""
    row = UploadItem.from_raw_data(job.row) if job.row is not None else None
    with opened(job.source.path) as file:
        contents = Large(file)
        if row is not None and row.state == DONE:
            if (row.size, row.sha256) == (contents.size, contents.sha256):
                return "skipped", STORED_BEFORE
            return "conflict", ANOTHER_STORED
        found = s3.head(job.destination.bucket, job.key)
        if found is None:
            file.assert_unchanged()
            return "uploaded", ""
        if are_equal(contents, found, job.destination.bucket, job.key):
            return "skipped", ADOPTED
        return "conflict", ANOTHER_THERE


def _beside_the_first(job: _Job, result: Result, firsts: _Firsts) -> Result:
    """What becomes of a file that would be uploaded, had not an earlier one the same key."""
    if result.outcome != "uploaded":
        return result
    key = hashlib.blake2b(job.key.encode(), digest_size=16).digest()
    first = firsts.get(key)
    if first is None:
        firsts[key] = job.source.path
        return result

    def compared(job: _Job) -> tuple[Outcome, str]:
        with opened(first) as earlier, opened(job.source.path) as later:
            if earlier.size == later.size and Large(earlier).sha256 == Large(later).sha256:
                return "skipped", STORED_BEFORE
        return "conflict", ANOTHER_STORED

    return _judged(job, compared)
