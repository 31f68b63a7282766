"""Forgets what was begun and will not be done, as where the local file is gone.

Each row is claimed as an upload would claim it. So no process can begin while its parts are
removed, and whoever breaks off here leaves a row that the next one takes over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator

from dynamo.client import send
from dynamo.exceptions import DamagedItem
from locks import records
from locks.clock import now
from locks.exceptions import LeaseLost
from locks.watching import Watch, is_free
from uploads import claims, s3
from uploads.claims import Claim, Holder
from uploads.destination import Destination
from uploads.exceptions import StorageFailed
from uploads.holding import ProcessLease
from uploads.models import UPLOADING, UploadItem

LEASE_SECONDS = 20.0

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
    lease = ProcessLease(LEASE_SECONDS)
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


def _claimed(url: str, lease: ProcessLease, gone: dict[Holder, bool]) -> Claim | None:
    """The row as ours; None where it is another's, done, or not there."""
    key = {"TableName": UploadItem.table(), "Key": {"key": {"S": url}}}
    item = send("GetItem", key).get("Item")
    if not item:
        return None
    row = UploadItem.from_raw_data(item)
    if row.state != UPLOADING:
        return None
    if not row.lease:
        answer = claims.take(url, row.size or 0, lease.current())
    else:
        holder = claims.holder_of(row)
        if holder not in gone:
            gone[holder] = _is_gone(holder)
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


def _is_gone(holder: Holder) -> bool:
    """Whether the process will write no more; watches its lock until it is renewed or over."""
    watch = Watch()
    first: str | None = None
    while True:
        lock = records.read(holder.lease)
        seen_at = now()
        if lock is None or is_free(lock) or lock.fence != holder.fence:
            return True
        first = first or lock.version
        watch.look_at(lock, seen_at)
        if lock.version != first or watch.ends_at == math.inf:
            return False
        if watch.is_over(seen_at):
            # Once its lock is removed, it cannot renew it.
            return records.delete(holder.lease, lock.stored)
        time.sleep(max(0.0, min(POLL_SECONDS, watch.ends_at - seen_at)))
