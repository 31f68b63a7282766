"""Uploads one file: claims its row, stores the object, writes that it is done.

A crash between two of these requests leaves a row that tells the next run where to continue. An
object that is already in the bucket is compared, and never stored again.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from dynamo import DynamoError, TableMissing
from dynamo.extending import pause_seconds, printable
from locks import LeaseLost
from uploads import claims
from uploads.claims import Claim, Holder, ProcessLease
from uploads.contents import OpenFile, crc32_of, is_composite, is_small, opened, sha1_of, sha256_of
from uploads.exceptions import (
    ClaimLost,
    Conflict,
    FileChanged,
    Interrupted,
    Unreadable,
    UploadError,
)
from uploads.models import DONE, UploadItem
from uploads.multipart import MultipartUploads, PartSenders
from uploads.sources import Destination, Source, Unusable
from web import s3
from web.s3 import BucketMissing, Found, ObjectExists, StorageBusy, StorageFailed, UploadGone

log = logging.getLogger(__name__)

#: How often a file is tried if its row or the lease is lost, another process is faster in S3, or an
#: object or an upload disappears meanwhile.
TRIES = 5

# Why a file is skipped or a conflict: because of its row in the table, or of an object.
STORED_BEFORE = "it was stored before"
ANOTHER_STORED = "another file was stored under this key"
ADOPTED = "the bucket had it already"
ANOTHER_THERE = "another object has this key"

Outcome = Literal["uploaded", "skipped", "conflict", "failed"]


@dataclass(frozen=True)
class Result:
    """The outcome of one source. `name` is printable; `key` is "" if the source is unusable.

    `reason` says why it was not uploaded, without a period.
    """

    name: str
    key: str
    outcome: Outcome
    size: int
    reason: str = ""

    @classmethod
    def of_unusable(cls, source: Unusable) -> Result:
        return cls(source.name, "", "failed", 0, source.reason)


@dataclass
class Summary:
    """The outcomes of a run. `bytes` counts the files that were uploaded."""

    uploaded: int = 0
    skipped: int = 0
    conflicts: int = 0
    failed: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def add(self, result: Result) -> None:
        counter = "conflicts" if result.outcome == "conflict" else result.outcome
        setattr(self, counter, getattr(self, counter) + 1)
        self.bytes += result.size if result.outcome == "uploaded" else 0


@dataclass(frozen=True)
class Run:
    """What all files of a run share.

    `gone`: the processes whose rows may be taken over. `reached`: set when S3 has done something
    for the run, so that a later failure concerns one file.
    """

    destination: Destination
    lease: ProcessLease
    gone: Set[Holder]
    senders: PartSenders
    reached: threading.Event

    def assert_reachable(self) -> None:
        """Check that S3 lists the bucket, unless it has already done something for the run.

        An error that concerns all files is then reported once. Costs 1 request until one succeeds.

        Raises:
            BucketMissing, StorageFailed: see `web.s3`.
        """
        if not self.reached.is_set():
            s3.check_bucket(self.destination.bucket, self.destination.key_prefix)
            self.reached.set()


@dataclass(eq=False)
class Job:
    """A file that is being uploaded.

    `is_put`: this run stored the object. If the lease is lost before the row says so, the next try,
    or another process, finds the object in the bucket; it still counts as uploaded by this run.
    """

    source: Source
    is_put: bool = False

    @property
    def key(self) -> str:
        return self.source.key

    def result(self, outcome: Outcome, size: int, reason: str | Exception = "") -> Result:
        reason = str(reason).removesuffix(".")
        return Result(printable(self.source.path), self.key, outcome, size, reason)


def store(job: Job, run: Run) -> Result | Holder:
    """Upload the file. If another process may be working on it, return the holder of its row.

    A new small file costs 2 requests, 2 write units and 1 PutObject; one that was uploaded before
    1 request, 1 write unit and nothing in S3.

    Raises:
        Interrupted: the run ended before the file was done; the row is free.
        BucketMissing, StorageFailed, TableMissing: no file can be uploaded.
    """
    lost: Exception
    for _try in range(TRIES):
        if run.senders.halt.is_set():
            raise Interrupted
        try:
            with opened(job.source.path) as file:
                return _store(file, job, run)
        except (ClaimLost, LeaseLost) as error:
            lost = error
        except (BucketMissing, Interrupted, TableMissing):
            raise
        except Conflict as error:
            return job.result("conflict", job.source.size, error)
        except (UploadError, StorageFailed, DynamoError) as error:
            if isinstance(error, StorageFailed):
                run.assert_reachable()
            return job.result("failed", job.source.size, error)
    return job.result("failed", job.source.size, lost)


def _store(file: OpenFile, job: Job, run: Run) -> Result | Holder:
    if is_small(file.size):
        file.read_whole()
    claim = _claimed(run.destination.url_for(job.key), file.size, run)
    if isinstance(claim, Holder):
        return claim
    if isinstance(claim, UploadItem):
        if claim.size != file.size or claim.sha256 != file.sha256:
            raise Conflict(job.key, ANOTHER_STORED)
        skipped = STORED_BEFORE
    else:
        _store_claimed(file, claim, job, run)
        run.reached.set()
        skipped = ADOPTED
    if job.is_put:
        return job.result("uploaded", file.size)
    return job.result("skipped", file.size, skipped)


def _claimed(url: str, size: int, run: Run) -> Claim | Holder | UploadItem:
    """The claimed row, or its holder, or the row if it is done."""
    held_by: Holder | None = None
    for _try in range(TRIES):
        row = claims.take(url, size, run.lease.current(), held_by)
        if isinstance(row, Claim) or (row is not None and row.state == DONE):
            return row
        # If it is absent or free now, it became so after this attempt.
        held_by = claims.holder_of(row) if row is not None and row.lease is not None else None
        if held_by is not None and held_by not in run.gone:
            return held_by
    raise ClaimLost(url)


def _store_claimed(file: OpenFile, claim: Claim, job: Job, run: Run) -> None:
    uploads = MultipartUploads(claim, run.destination.bucket, job.key, run.senders)
    with _released_on_error(uploads):
        if is_small(file.size):
            etag, sha256, is_put = _put(file, uploads, job, run)
        else:
            etag, sha256, is_put = _upload_in_parts(file, uploads, job, run)
        job.is_put |= is_put
        claim.lease.check()
        claims.finish(uploads.claim, file.size, sha256, etag)
    if is_small(file.size):
        run.senders.sent(file.size)


def _put(file: OpenFile, uploads: MultipartUploads, job: Job, run: Run) -> tuple[str, str, bool]:
    """Returns the ETag, the checksum, and whether this run stored the object.

    Costs 1 request; if an object has the key, 1 more to look at it, and the cost of `is_equal`.
    """
    uploads.abort_all()  # the file may have been large before
    bucket = run.destination.bucket
    for attempt in itertools.count(1):
        uploads.claim.lease.check()
        try:
            return s3.put(bucket, job.key, file.read_whole(), file.sha256), file.sha256, True
        except ObjectExists as exists:
            found = s3.head(bucket, job.key)
            if found is not None:
                _assert_equal(file, found, bucket, job.key)
                # If botocore repeated the request, the first attempt most likely stored it.
                return found.etag, file.sha256, exists.retries > 0
            if attempt >= TRIES:
                raise
        except StorageBusy:
            if attempt >= TRIES:
                raise
        time.sleep(pause_seconds(attempt))
    raise AssertionError("unreachable: the loop ends by return or raise")


def _upload_in_parts(
    file: OpenFile, uploads: MultipartUploads, job: Job, run: Run
) -> tuple[str, str, bool]:
    """As `_put`. Costs 1 request to look for the object, then as `MultipartUploads.store`."""
    uploads.abort_others()
    bucket = run.destination.bucket
    for attempt in itertools.count(1):
        found = s3.head(bucket, job.key)
        if found is not None:
            _assert_equal(file, found, bucket, job.key)
            uploads.abort()
            return found.etag, file.sha256, uploads.may_be_completed
        try:
            return (*uploads.store(file), True)
        except (ObjectExists, UploadGone):
            # Completed by another process, or by an attempt whose reply was lost; or aborted.
            if attempt >= TRIES:
                raise
        except StorageBusy:
            # S3 wants a new upload then.
            uploads.abort()
            if attempt >= TRIES:
                raise
            time.sleep(pause_seconds(attempt))
        except StorageFailed:
            # S3 refuses bytes that do not match their checksum: the file may have changed.
            file.assert_unchanged()
            raise
    raise AssertionError("unreachable: the loop ends by return or raise")


def _assert_equal(file: OpenFile, found: Found, bucket: str, key: str) -> None:
    if not is_equal(file, found, bucket, key):
        raise Conflict(key, ANOTHER_THERE)


def is_equal(file: OpenFile, found: Found, bucket: str, key: str) -> bool:
    """Whether the object has the bytes of the file, by the strongest checksum that S3 has of it.

    That is its SHA-256; the SHA-256 over its parts, cut as they were; a SHA-1 or CRC-32 of the
    whole object; otherwise it is downloaded. Never the ETag, which is not always a checksum. Costs
    nothing, 1 request for the sizes of the parts, or the download.

    Raises:
        StorageFailed: S3 refused, or did not answer.
        FileChanged, Unreadable: see `OpenFile`.
    """
    if found.size != file.size:
        return False
    if found.sha256 is not None:
        if found.sha256 == file.sha256:
            return True
        if not is_composite(found.sha256):
            return found.sha256 == sha256_of(file.chunks(0, file.size))
        sizes = s3.part_sizes(bucket, key)
        if sizes and sum(sizes) == file.size:
            offsets = accumulate(sizes, initial=0)
            return found.sha256 == file.sha256_over(zip(offsets, sizes, strict=False))
    if found.sha1 is not None:
        return found.sha1 == sha1_of(file.chunks(0, file.size))
    if found.crc32 is not None:
        return found.crc32 == crc32_of(file.chunks(0, file.size))
    return sha256_of(s3.download(bucket, key)) == sha256_of(file.chunks(0, file.size))


@contextmanager
def _released_on_error(uploads: MultipartUploads) -> Iterator[None]:
    """After an error, stop naming this process in the row.

    If a later run may succeed, the row stays, free, with the parts that S3 has. Otherwise both are
    deleted. A row that may name another process is not changed.
    """
    try:
        yield
    except (ClaimLost, LeaseLost):
        raise
    except (Conflict, FileChanged, Unreadable, BucketMissing):
        _give_back(uploads, keep_parts=False)
        raise
    except (UploadError, StorageFailed, DynamoError):
        _give_back(uploads, keep_parts=True)
        raise


def _give_back(uploads: MultipartUploads, *, keep_parts: bool) -> None:
    claim = uploads.claim
    try:
        if keep_parts and (claim.upload_id or not claim.is_only_upload):
            claims.release(claim)
            return
        with suppress(BucketMissing):  # its parts are gone too
            uploads.abort_all()
        claims.delete(claim)
    except LeaseLost:
        return  # the row may name another process, which finds out itself
    except StorageFailed as error:
        log.warning("The parts of %s stay in the bucket: %s", printable(claim.url), error)
        claims.release(claim)
    except DynamoError as error:
        # The row names our lock until that is removed at the end of the run.
        log.warning("The claim of %s stays: %s", printable(claim.url), error)
