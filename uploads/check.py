"""Whether the table and the bucket agree on every object below a prefix; removal of stale rows.

A check works while files are uploaded, in bounded memory.

1. The rows and the objects are read and sorted by key. If a row and its object agree on size and
   ETag, nothing more is read.
2. Uploads continue in the meantime, and ETags do not prove contents. For each other key, row and
   object are read again, and only these decide.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Literal, get_args

from dynamo import DamagedItem
from dynamo.tables.findings import Findings, Progress, Spool, confirmed, scanned, unseen
from dynamo.wire.types import Item
from dynamo.wire.values import text_of
from locks.holders import Holder, HolderWatch
from uploads import claims, s3
from uploads.contents import composite_of, is_composite, parts_of, sha256_of
from uploads.models import DONE, UploadItem
from uploads.sources import Destination

Difference = Literal["missing", "foreign", "different", "unfinished"]

#: The difference, by whether the row is done (None without a row) and whether there is an object. A
#: row that is done is compared with its object.
_DIFFERENCES: dict[tuple[bool | None, bool], Difference] = {
    (None, True): "foreign",
    (False, True): "unfinished",
    (False, False): "unfinished",
    (True, False): "missing",
}

_OBJECT, _ROW = "object", "row"


@dataclass
class Report:
    """The result of a check below the prefix: the numbers of rows and objects, and keys.

    `missing` keys are done in the table, but not in the bucket. `foreign` keys are in the bucket,
    but not in the table. `different` objects are not the ones that were uploaded. `unfinished`
    uploads are in progress or were interrupted.
    """

    rows: int = 0
    objects: int = 0
    findings: dict[Difference, Findings[str]] = field(
        default_factory=lambda: {argument: Findings() for argument in get_args(Difference)}
    )

    @property
    def is_sound(self) -> bool:
        return not any(self.findings.values())


def check_uploads(destination: Destination, *, progress: Progress = unseen) -> Report:
    """Compare the rows of `uploads` with the objects below the prefix.

    Costs a scan of the whole table (1 request per MB, 1 read unit per 4 KB), 1 request per 1,000
    objects, and for each key that needs a second look 1 or 2 read units and a HeadObject. An object
    with the size of its row, but another ETag and no checksum to compare, is downloaded. Uses about
    400 bytes of disk per row and object while it runs.

    Raises:
        BucketMissing, StorageFailed: see `uploads.s3`.
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending.send`.
    """
    report = Report()
    with Spool() as spool:
        _read_all(spool, destination, report, progress)

        def confirm(suspect: tuple[str, Difference]) -> tuple[str, Difference | None]:
            key, suspected = suspect
            is_full = report.findings[suspected].is_full
            return key, suspected if is_full else _difference_of(key, destination)

        for key, difference in confirmed(_suspects(spool), confirm, progress):
            if difference:
                report.findings[difference].add(key)
    return report


def _read_all(spool: Spool, destination: Destination, report: Report, progress: Progress) -> None:
    """Store the size and the ETag of each object, and of each row that is done."""
    bucket = destination.bucket
    prefix = destination.key_prefix
    for listed in s3.list_objects(bucket, prefix):
        for key, size, etag in listed:
            spool.add(key, _OBJECT, str(size), etag)
        report.objects += len(listed)
        progress("Objects listed", len(listed))
    attributes = ("key", "state", "size", "etag")
    for row in scanned(UploadItem.table(), attributes, progress):
        url = row["key"]["S"]
        if url.startswith(destination.url_for(prefix)):
            values = row.get("size", {}).get("N", ""), text_of(row, "etag")
            key = url.removeprefix(destination.url_for(""))
            spool.add(key, _ROW, *(values if _is_done(row) else ()))
            report.rows += 1


def _suspects(spool: Spool) -> Iterator[tuple[str, Difference]]:
    """The keys whose row and object do not agree."""
    for key, entries in groupby(spool, key=itemgetter(0)):
        values = {source: value for _key, source, *value in entries}
        row = values.get(_ROW)
        found = values.get(_OBJECT)
        is_done = None if row is None else bool(row)
        difference = _DIFFERENCES.get((is_done, found is not None))
        if difference or row != found:
            yield key, difference or "different"


def _difference_of(key: str, destination: Destination) -> Difference | None:
    """The difference of row and object of a key now; None if they agree."""
    url = destination.url_for(key)
    bucket = destination.bucket
    row = claims.read(url)
    found = s3.head(bucket, key)
    if found is not None and not _is_done(row):
        # The row is written first: if both are new since the first read, it exists now.
        row = claims.read(url)
    if row is None or found is None or not _is_done(row):
        return _DIFFERENCES.get((None if row is None else _is_done(row), found is not None))
    return None if _is_same(UploadItem.from_raw_data(row), found, bucket, key) else "different"


def _is_same(row: UploadItem, found: s3.Found, bucket: str, key: str) -> bool:
    """Whether the object has the bytes that the row describes."""
    if row.size != found.size or row.sha256 is None:
        return False
    if row.etag == found.etag or row.sha256 == found.sha256:
        return True
    if is_composite(row.sha256):
        parts = [sha256_of(s3.download(bucket, key, part)) for part in parts_of(found.size)]
        return row.sha256 == composite_of(parts)
    if found.sha256 and not is_composite(found.sha256):
        return False
    return row.sha256 == sha256_of(s3.download(bucket, key))


def _is_done(row: Item | None) -> bool:
    return text_of(row, "state") == DONE


def forget(destination: Destination, keys: Iterable[str]) -> Iterator[str]:
    """Delete the rows of these keys without an object. Yields the deleted keys.

    The parts of an unfinished upload are removed as well. A row is kept if a process works on it,
    if it changes meanwhile, or if it cannot be read. If a process takes the row over while the
    parts are removed, it begins its upload again. Costs for each key 1 read unit, 1 write unit, 2
    requests to S3 and 1 for each upload that is aborted; for each process that a row names, 1 read
    unit per second until it is known whether it is gone, at most one lease.

    Raises:
        BucketMissing, StorageFailed: see `uploads.s3`.
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending.send`.
    """
    bucket = destination.bucket
    gone: dict[Holder, bool] = {}
    for key in keys:
        item = claims.read(destination.url_for(key))
        with suppress(DamagedItem):
            row = UploadItem.from_raw_data(item) if item else None
            # The row is read first: the object exists before the row is done.
            if row is None or not _is_free(row, gone) or s3.head(bucket, key) is not None:
                continue
            # If the row is done, uploads of its key belong to other programs.
            unfinished = [] if row.state == DONE else s3.list_uploads(bucket, key)
            for upload_id in unfinished:
                s3.abort_upload(bucket, key, upload_id)
            if claims.delete_unchanged(row):
                yield key


def _is_free(row: UploadItem, gone: dict[Holder, bool]) -> bool:
    """Whether no process works on the row. `gone` has the known state of the processes."""
    holder = claims.holder_of(row)
    if holder is None:
        return True
    if holder not in gone:
        gone[holder] = HolderWatch(holder).wait_until_gone(claims.POLL_SECONDS)
    return gone[holder]
