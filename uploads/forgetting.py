"""Forgets what was begun and will not be done, and what was done and is lost from the bucket.

A row that was begun is claimed as an upload would claim it. So no process can begin while its parts
are removed, and whoever breaks off here leaves a row that the next one takes over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dynamo.exceptions import DamagedItem
from locks.exceptions import LeaseLost
from locks.holders import HolderWatch
from uploads import claims, s3
from uploads.claims import Claim, Holder
from uploads.destination import Destination
from uploads.exceptions import StorageFailed
from uploads.holding import ProcessLease
from uploads.models import DONE, UPLOADING, UploadItem

#: The longest pause between two looks at a process that may be gone.
POLL_SECONDS = 1.0


def forget_unfinished(destination: Destination, keys: Iterable[str]) -> Iterator[str]:
    """Remove the rows of these keys, and their parts; which of them are gone now.

    Only where nobody works on the row, no object is there, and it can be read. Costs for each key 1
    read unit, 2 write units, and 2 requests to S3, with 1 for each upload that is aborted; for each
    process that a row names, 1 read unit a second until it is known whether it is gone: a lease at
    most.

    Raises:
        BucketMissing, StorageFailed: see `uploads.s3`.
        Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
    """
    lease = ProcessLease()
    gone: dict[Holder, bool] = {}
    try:
        for key in keys:
            try:
                claim = _claimed(destination.url_for(key), lease, gone)
                is_removed = claim is not None and _is_removed(claim, destination.bucket, key)
            except (DamagedItem, LeaseLost):
                continue  # what we claimed is free, as we seem to be gone
            if is_removed:
                yield key
    finally:
        lease.release()


def forget_missing(destination: Destination, keys: Iterable[str]) -> Iterator[str]:
    """Remove the rows of these keys that are done and have no object; which of them are gone now.

    Whoever has one of the files then uploads it again. Costs for each key 1 read unit, 1 write unit
    and 1 HeadObject.

    Raises:
        StorageFailed: see `uploads.s3`.
        Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
    """
    for key in keys:
        item = claims.read(destination.url_for(key))
        if item is None:
            continue
        try:
            row = UploadItem.from_raw_data(item)
        except DamagedItem:
            continue
        # The row first: one that is done has its object before it is.
        if row.state == DONE and s3.head(destination.bucket, key) is None and claims.forget(row):
            yield key


def _claimed(url: str, lease: ProcessLease, gone: dict[Holder, bool]) -> Claim | None:
    """The row as ours; None where it is another's, done, or not there."""
    item = claims.read(url)
    if item is None:
        return None
    row = UploadItem.from_raw_data(item)
    if row.state != UPLOADING:
        return None
    if not row.lease:
        answer = claims.take(url, row.size or 0, lease.current())
    else:
        holder = claims.holder_of(row)
        if holder not in gone:
            watch = HolderWatch(holder.lease, holder.fence)
            gone[holder] = watch.is_outwaited(POLL_SECONDS)
        if not gone[holder]:
            return None
        answer = claims.take_over(row, row.size or 0, lease.current())
    return answer if isinstance(answer, Claim) else None


def _is_removed(claim: Claim, bucket: str, key: str) -> bool:
    try:
        if s3.head(bucket, key) is not None:
            # The next run that has the file compares them.
            claims.let_go(claim)
            return False
        for upload_id in s3.uploads_of(bucket, key):
            claim.lease.check()
            s3.abort(bucket, key, upload_id)
    except StorageFailed:
        claims.let_go(claim)
        raise
    claims.give_up(claim)
    return True
