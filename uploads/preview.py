"""A dry run: predicts what `transfer.store` would do, and writes nothing."""

from dynamo import DamagedItem
from uploads import claims, s3, transfer
from uploads.contents import OpenFile, opened
from uploads.exceptions import Conflict, Interrupted, UploadError
from uploads.models import DONE, UploadItem
from uploads.s3 import StorageFailed
from uploads.sources import Result
from uploads.transfer import Job, Run


def predict(job: Job, run: Run) -> Result:
    """The result that `store` would have now. No bytes are sent.

    Costs 1 read unit, and a HeadObject if the table does not have the file. If table or bucket have
    it, the file is read, and an object may have to be downloaded. The path and the key of each file
    that would be uploaded are kept in memory, for a later file with the same key.

    Raises:
        Interrupted: the run was told to stop.
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending.send`.
    """
    if run.halt.is_set():
        raise Interrupted
    source = job.source
    try:
        with opened(source.path, source.real) as file:
            skipped = _skipped(file, job, run)
    except Conflict as error:
        return job.result("conflict", source.size, error)
    except (UploadError, StorageFailed, DamagedItem) as error:
        return job.result("failed", source.size, error)
    if not skipped:
        run.predicted[job.key] = source
    return job.result("skipped" if skipped else "uploaded", source.size, skipped)


def _skipped(file: OpenFile, job: Job, run: Run) -> str:
    """The reason why the file would be skipped; "" if it would not.

    Raises:
        Conflict: the key belongs to another file or object.
    """
    if first := run.predicted.get(job.key):
        with opened(first.path, first.real) as earlier:
            return transfer.stored_before(file, job, earlier.size, earlier.sha256)
    bucket = run.destination.bucket
    item = claims.read(run.destination.url_for(job.key))
    row = UploadItem.from_raw_data(item) if item is not None else None
    if row is not None and row.state == DONE:
        return transfer.stored_before(file, job, row.size, row.sha256)
    found = s3.head(bucket, job.key)
    if found is None:
        file.assert_unchanged()
        return ""
    if not transfer.is_equal(file, found, bucket, job.key):
        raise Conflict(job.key, transfer.ANOTHER_THERE)
    return transfer.ADOPTED
