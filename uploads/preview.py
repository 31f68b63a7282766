"""A dry run: predicts the result of a run without writing to the table or the bucket."""

import threading
from collections.abc import Callable, Iterable
from itertools import islice

from dynamo import DamagedItem
from dynamo.client.bulk import READ_MAX_ITEMS, read_batches
from dynamo.client.tally import CountingPool
from dynamo.wire.types import Item
from uploads import s3, transfer
from uploads.contents import opened
from uploads.exceptions import Conflict, UploadError
from uploads.models import DONE, UploadItem
from uploads.s3 import StorageFailed
from uploads.sources import Destination, Source, Unusable
from uploads.transfer import Job, Result, Summary


def preview_files(
    sources: Iterable[Source | Unusable],
    destination: Destination,
    *,
    workers: int = 8,
    on_result: Callable[[Result], object],
    on_bytes: Callable[[int], object],
    stop: threading.Event,
) -> Summary:
    """The result that `upload_files` would have for each source now. No bytes are sent.

    Costs 1 request per 100 files, 1 read unit per file, and a HeadObject for each file that is not
    in the table. A file that is in the table or in the bucket is read, and an object may have to be
    downloaded. The path and the key of each file that would be uploaded are kept in memory, to
    predict the result of a later file with the same key.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending.send`.
    """
    summary = Summary()
    remaining = iter(sources)
    #: The files that would be uploaded, by their keys.
    first: dict[str, Source] = {}

    def foretold(job: Job, row: Item | None) -> Result | None:
        if stop.is_set():
            return None
        return _result(job, _skipped, job, row, destination.bucket)

    def note(result: Result) -> None:
        summary.add(result)
        on_result(result)

    with CountingPool(workers) as pool:
        while not stop.is_set() and (batch := list(islice(remaining, READ_MAX_ITEMS))):
            for source in batch:
                if isinstance(source, Unusable):
                    note(Result.of_unusable(source))
            jobs = [Job(source) for source in batch if isinstance(source, Source)]
            urls = [destination.url_for(job.key) for job in jobs]
            keys = [{"key": {"S": url}} for url in dict.fromkeys(urls)]
            rows = {row["key"]["S"]: row for row in read_batches(UploadItem.table(), keys)}
            results = pool.map(foretold, jobs, map(rows.get, urls))
            for job, result in zip(jobs, results, strict=True):
                if result is None:
                    continue
                if result.outcome == "uploaded" and job.key in first:
                    result = _result(job, _skipped_after, first[job.key], job)
                elif result.outcome == "uploaded":
                    first[job.key] = job.source
                note(result)
    return summary


def _result(job: Job, foretell: Callable[..., str], *arguments: object) -> Result:
    try:
        skipped = foretell(*arguments)
    except Conflict as error:
        return job.result("conflict", job.source.size, error)
    except (UploadError, StorageFailed, DamagedItem) as error:
        return job.result("failed", job.source.size, error)
    return job.result("skipped" if skipped else "uploaded", job.source.size, skipped)


def _skipped(job: Job, item: Item | None, bucket: str) -> str:
    """Why the file would be skipped, by the row and the object that exist now; "" if it would not.

    Raises:
        Conflict: the key belongs to another object.
    """
    row = UploadItem.from_raw_data(item) if item is not None else None
    with opened(job.source.path, job.source.real) as file:
        if row is not None and row.state == DONE:
            if (row.size, row.sha256) != (file.size, file.sha256):
                raise Conflict(job.key, transfer.ANOTHER_STORED)
            return transfer.STORED_BEFORE
        found = s3.head(bucket, job.key)
        if found is None:
            file.assert_unchanged()
            return ""
        if not transfer.is_equal(file, found, bucket, job.key):
            raise Conflict(job.key, transfer.ANOTHER_THERE)
        return transfer.ADOPTED


def _skipped_after(first: Source, job: Job) -> str:
    """The same, once an earlier file with the same key is uploaded."""
    later_file = job.source
    with (
        opened(first.path, first.real) as earlier,
        opened(later_file.path, later_file.real) as later,
    ):
        if earlier.size != later.size or earlier.sha256 != later.sha256:
            raise Conflict(job.key, transfer.ANOTHER_STORED)
    return transfer.STORED_BEFORE
