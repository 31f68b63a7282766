"""Uploads one file: claims its row, stores the object, and records that it is done.

After a crash between two of these requests, the row tells the next run where to continue. An object
that is already in the bucket is compared, and never stored again.

A large file is sent in parts, and the row names its multipart upload from the creation on. A run
that resumes it reads every part from disk and sends those that S3 does not have with the same size
and SHA-256. CompleteMultipartUpload names the checksum of every part, so a part that another
process changed is not used.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate

from dynamo import DynamoError, TableMissing
from dynamo.client.retries import pause_seconds
from dynamo.runtime.terminal import printable
from locks import LeaseLost
from locks.holders import Holder, ProcessLease
from uploads import claims, contents, s3
from uploads.claims import Claim
from uploads.contents import OpenFile, Span
from uploads.exceptions import ClaimLost, Conflict, Interrupted, Unreadable, UploadError
from uploads.models import DONE, UploadItem
from uploads.s3 import StorageFailed
from uploads.sources import Destination, Outcome, Result, Source

log = logging.getLogger(__name__)

#: A file is tried this many times if its row or the lease is lost, if another process is faster in
#: S3, or if an object, an upload or one of its parts no longer exists.
TRIES = 5

# The reasons for skipping a file or reporting a conflict: its row in the table, or an object.
STORED_BEFORE = "it was stored before"
ANOTHER_STORED = "another file was stored under this key"
ADOPTED = "the bucket had it already"
ANOTHER_THERE = "another object has this key"


@dataclass
class Summary:
    """The outcomes of a run. `bytes` counts the files that were uploaded."""

    uploaded: int = 0
    skipped: int = 0
    conflicts: int = 0
    failed: int = 0
    bytes: int = 0

    def add(self, result: Result) -> None:
        counter = "conflicts" if result.outcome == "conflict" else result.outcome
        setattr(self, counter, getattr(self, counter) + 1)
        self.bytes += result.size if result.outcome == "uploaded" else 0


@dataclass(frozen=True)
class Run:
    """The state that all files of a run share.

    - `gone`: the processes whose rows may be taken over.
    - `threads`: send parts. Up to `ahead` parts of one file may wait for a thread.
    - `halt`: set to stop before the next file or part.
    - `sent`: called from any thread with the number of bytes of each stored file or part.
    - `reached`: set after the first successful request to S3. A later failure concerns one file.
    - `is_dry`: nothing is written, and no bytes are sent.
    - `predicted`: in a dry run, the files that would be uploaded, by their keys.
    """

    destination: Destination
    lease: ProcessLease
    gone: Set[Holder]
    threads: Executor
    ahead: int
    halt: threading.Event
    sent: Callable[[int], None]
    is_dry: bool
    reached: threading.Event = field(default_factory=threading.Event)
    predicted: dict[str, Source] = field(default_factory=dict)

    def assert_reachable(self) -> None:
        """Check that S3 lists the bucket, unless a request to S3 has succeeded before.

        Therefore, an error that concerns all files is reported once. Costs 1 request until one
        succeeds.

        Raises:
            BucketMissing, StorageFailed: see `uploads.s3`.
        """
        if not self.reached.is_set():
            s3.check_bucket(self.destination.bucket, self.destination.key_prefix)
            self.reached.set()


@dataclass(eq=False)
class Job:
    """A file that is being uploaded.

    `is_put` says that this run stored the object. If the lease is lost before this is recorded, the
    next try or another process finds the object in the bucket. It still counts as uploaded by this
    run.
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
    """Upload the file, or predict the result in a dry run.

    If another process may be working on it, return the holder of its row.

    A new small file costs 2 requests, 2 write units and 1 PutObject; one that was uploaded before
    1 request, 1 write unit and nothing in S3.

    Raises:
        Interrupted: the run ended before the file was done; the row is free.
        BucketMissing, StorageFailed, TableMissing: no file can be uploaded.
    """
    lost: Exception
    for _try in range(TRIES):
        if run.halt.is_set():
            raise Interrupted
        try:
            with contents.opened(job.source.path, job.source.real) as file:
                return (_predict if run.is_dry else _store)(file, job, run)
        except (ClaimLost, LeaseLost) as error:
            lost = error
        except (s3.BucketMissing, Interrupted, TableMissing):
            raise
        except Conflict as error:
            return job.result("conflict", job.source.size, error)
        except (UploadError, StorageFailed, DynamoError) as error:
            if isinstance(error, StorageFailed):
                run.assert_reachable()
            return job.result("failed", job.source.size, error)
    return job.result("failed", job.source.size, lost)


def _store(file: OpenFile, job: Job, run: Run) -> Result | Holder:
    if contents.is_small(file.size):
        file.read_whole()
    claim = _claimed(run.destination.url_for(job.key), file.size, run)
    if isinstance(claim, Holder):
        return claim
    if isinstance(claim, UploadItem):
        skipped = _stored_before(file, job, claim.size, claim.sha256)
    else:
        _Storing(file, claim, job, run).store()
        run.reached.set()
        skipped = ADOPTED
    if job.is_put:
        return job.result("uploaded", file.size)
    return job.result("skipped", file.size, skipped)


def _predict(file: OpenFile, job: Job, run: Run) -> Result:
    """The result that `_store` would have now.

    Costs 1 read unit, and a HeadObject if the table does not have the file. If table or bucket have
    it, the file is read, and an object may have to be downloaded. The path and the key of each file
    that would be uploaded are kept in memory, for a later file with the same key.
    """
    item = claims.read(run.destination.url_for(job.key))
    row = UploadItem.from_raw_data(item) if item is not None else None
    if first := run.predicted.get(job.key):
        with contents.opened(first.path, first.real) as earlier:
            skipped = _stored_before(file, job, earlier.size, earlier.sha256)
    elif row is not None and row.state == DONE:
        skipped = _stored_before(file, job, row.size, row.sha256)
    elif _equal_object(file, run.destination.bucket, job.key):
        skipped = ADOPTED
    else:
        file.assert_unchanged()
        run.predicted[job.key] = job.source
        return job.result("uploaded", file.size)
    return job.result("skipped", file.size, skipped)


def _stored_before(file: OpenFile, job: Job, size: int | None, sha256: str | None) -> str:
    """The reason to skip the file: one with its size and checksum is stored under its key.

    Raises: Conflict: another file is stored under its key.
    """
    if (file.size, file.sha256) != (size, sha256):
        raise Conflict(job.key, ANOTHER_STORED)
    return STORED_BEFORE


def _claimed(url: str, size: int, run: Run) -> Claim | Holder | UploadItem:
    """The claimed row; or its holder, if another process has it; or the row, if it is done."""
    held_by: Holder | None = None
    for _try in range(TRIES):
        row = claims.take(url, size, run.lease.current(), held_by)
        if isinstance(row, Claim) or (row is not None and row.state == DONE):
            return row
        # If the row is absent or free now, this changed after our attempt.
        held_by = claims.holder_of(row) if row is not None else None
        if held_by is not None and held_by not in run.gone:
            return held_by
    raise ClaimLost(url)


class _Storing:
    """Stores the file whose row is claimed. `_claim` is the current state of the row.

    Its methods raise `LeaseLost` or `ClaimLost` if the row may name another process, which may be
    storing the object, too.
    """

    def __init__(self, file: OpenFile, claim: Claim, job: Job, run: Run) -> None:
        self._file = file
        self._claim = claim
        self._job = job
        self._run = run
        self._place = run.destination.bucket, job.key
        self._content_type = run.destination.content_type_for(job.key)
        #: Whether CompleteMultipartUpload was sent, so that an object may exist.
        self._may_be_completed = False

    def store(self) -> None:
        """Store the object, or find that it is there, and write that the row is done.

        After an error, the row no longer names this process. If a later run may succeed, the row is
        kept as free, with the parts in S3. Otherwise, both are deleted. A row that may name another
        process is not changed.
        """
        size = self._file.size
        try:
            etag, sha256, is_put = self._stored()
            self._job.is_put |= is_put
            self._claim.lease.check()
            claims.finish(self._claim, size, sha256, etag)
        except (ClaimLost, LeaseLost):
            raise
        except (Conflict, Unreadable, s3.BucketMissing):
            self._give_back(keep_parts=False)
            raise
        except (UploadError, StorageFailed, DynamoError):
            self._give_back(keep_parts=True)
            raise
        if contents.is_small(size):
            self._run.sent(size)

    def _stored(self) -> tuple[str, str, bool]:
        """Store the object. Returns its ETag and checksum, and whether this run stored it."""
        if contents.is_small(self._file.size):
            self._abort()  # the file may have been larger in an earlier run
            attempt = self._put
        else:
            attempt = self._upload_in_parts
        self._abort_others()
        tries = 0
        while True:
            tries += 1
            try:
                return attempt()
            except (s3.ObjectExists, s3.PartChanged, s3.StorageBusy, s3.UploadGone) as error:
                # Another process was faster, S3 was busy, or an object or upload is gone. A part
                # changes if the process from which we took over was frozen while it sent the part.
                if isinstance(error, s3.StorageBusy):
                    self._abort()  # S3 requires a new upload in this case
                if tries >= TRIES:
                    raise
            except StorageFailed:
                # S3 refuses bytes that do not match their checksum: the file may have changed.
                self._file.assert_unchanged()
                raise
            time.sleep(pause_seconds(tries))

    def _put(self) -> tuple[str, str, bool]:
        """Like `_stored`. Costs 1 request, and that of `_equal_object` if an object has the key."""
        file = self._file
        self._claim.lease.check()
        try:
            etag = s3.put(*self._place, file.read_whole(), file.sha256, self._content_type)
            return etag, file.sha256, True
        except s3.ObjectExists as exists:
            found = _equal_object(file, *self._place)
            if found is None:
                raise
            # If botocore repeated the request, the first attempt most likely stored it.
            return found.etag, file.sha256, exists.retries > 0

    def _upload_in_parts(self) -> tuple[str, str, bool]:
        """Like `_stored`, for the file or the rest of it.

        Costs 1 request to look for the object; 1 to create the upload and 1 to record it, or 1 to
        list its parts; 1 for each part to send; and 1 to complete.
        """
        if found := _equal_object(self._file, *self._place):
            self._abort()
            return found.etag, self._file.sha256, self._may_be_completed
        upload_id, stored = self._begin_upload()
        sent = self._send_parts(upload_id, stored)
        self._file.assert_unchanged()
        self._claim.lease.check()
        self._may_be_completed = True
        etag = s3.complete_upload(*self._place, upload_id, sent)
        return etag, contents.composite_of([part.sha256 or "" for part in sent]), True

    def _begin_upload(self) -> tuple[str, Mapping[int, s3.Part]]:
        """Continue the upload that the row names, or create one. Returns its id and its parts."""
        upload_id = self._claim.upload_id
        if upload_id is not None:
            with suppress(s3.UploadGone):  # aborted, because there was no object just before
                return upload_id, s3.list_parts(*self._place, upload_id)
        self._claim.lease.check()
        # If the reply is lost, an upload exists whose id is unknown.
        self._claim = replace(self._claim, is_only_upload=False)
        upload_id, was_repeated = s3.create_upload(*self._place, self._content_type)
        try:
            self._claim = claims.record_upload(self._claim, upload_id)
        except (ClaimLost, DynamoError):
            # If the id was recorded nevertheless, the next run finds that the upload is gone.
            with suppress(StorageFailed):
                s3.abort_upload(*self._place, upload_id)
            raise
        if was_repeated:
            self._abort_others()
        self._claim = replace(self._claim, is_only_upload=True)
        return upload_id, {}

    def _send_parts(self, upload_id: str, stored: Mapping[int, s3.Part]) -> list[s3.Part]:
        sent: list[s3.Part] = []
        waiting: deque[Future[s3.Part]] = deque()
        try:
            for number, part in enumerate(contents.parts_of(self._file.size), 1):
                if len(waiting) >= self._run.ahead:
                    sent.append(waiting.popleft().result())
                span = Span(self._file, *part)
                before = stored.get(number)
                waiting.append(
                    self._run.threads.submit(self._send_part, upload_id, number, span, before)
                )
            sent += [item.result() for item in waiting]
        finally:
            for entry in waiting:
                entry.cancel()
            wait(waiting)
        return sent

    def _send_part(
        self, upload_id: str, number: int, span: Span, stored: s3.Part | None
    ) -> s3.Part:
        if self._run.halt.is_set():
            raise Interrupted
        sha256 = span.sha256
        if stored is None or (stored.size, stored.sha256) != (len(span), sha256):
            self._claim.lease.check()
            stored = s3.send_part(*self._place, upload_id, number, span, sha256)
        self._run.sent(len(span))
        return stored

    def _abort_others(self) -> None:
        """Abort every upload of the key that the row does not name.

        They exist if a process died, or got no reply, after it created one. Costs nothing if there
        cannot be any, otherwise 1 request to list them and 1 for each.
        """
        if self._claim.is_only_upload:
            return
        for upload_id in s3.list_uploads(*self._place):
            if upload_id != self._claim.upload_id:
                # Without the lease, another process may have claimed the row, and have an upload.
                self._claim.lease.check()
                s3.abort_upload(*self._place, upload_id)
        self._claim = replace(self._claim, is_only_upload=True)

    def _abort(self) -> None:
        """Abort the upload that the row names, if there is one, and remove its parts."""
        if self._claim.upload_id is not None:
            self._claim.lease.check()
            s3.abort_upload(*self._place, self._claim.upload_id)
            self._claim = replace(self._claim, upload_id=None)

    def _give_back(self, *, keep_parts: bool) -> None:
        claim = self._claim
        has_parts = bool(claim.upload_id) or not claim.is_only_upload
        try:
            if (keep_parts and has_parts) or not self._are_parts_removed():
                claims.release(claim)
            else:
                claims.delete(claim)
        except LeaseLost:
            return  # the row may name another process, which then handles the upload
        except DynamoError as error:
            # The row names our lock until that is removed at the end of the run.
            log.warning("The claim of %s stays: %s", printable(claim.url), error)

    def _are_parts_removed(self) -> bool:
        """Remove all parts of the key. If S3 refuses, the next run removes them."""
        try:
            with suppress(s3.BucketMissing):  # its parts are gone too
                self._abort()
                self._abort_others()
        except StorageFailed as error:
            url = printable(self._claim.url)
            log.warning("The parts of %s stay in the bucket: %s", url, error)
            return False
        return True


def _equal_object(file: OpenFile, bucket: str, key: str) -> s3.Found | None:
    """The object with the key; None if there is none. Costs 1 request, and `_is_equal`.

    Raises:
        Conflict: it has other bytes than the file.
    """
    found = s3.head(bucket, key)
    if found is not None and not _is_equal(file, found, bucket, key):
        raise Conflict(key, ANOTHER_THERE)
    return found


def _is_equal(file: OpenFile, found: s3.Found, bucket: str, key: str) -> bool:
    """Whether the object has the bytes of the file, by the strongest checksum that S3 has of it.

    This is its SHA-256, the SHA-256 over its parts, or a CRC-32 of the whole object. Without a
    checksum, the object is downloaded. The ETag is not used, because it is not always a checksum.
    Costs nothing, 1 request for the sizes of the parts, or the download.

    Raises:
        StorageFailed: S3 refused, or did not answer.
        Unreadable: see `OpenFile`.
    """
    if found.size != file.size:
        return False
    whole = file.chunks(0, file.size)
    if found.sha256 is not None:
        if found.sha256 == file.sha256:
            return True
        if not contents.is_composite(found.sha256):
            return found.sha256 == contents.sha256_of(whole)
        sizes = s3.part_sizes(bucket, key)
        if sizes and sum(sizes) == file.size:
            offsets = accumulate(sizes, initial=0)
            return found.sha256 == file.sha256_over(zip(offsets, sizes, strict=False))
    if found.crc32 is not None:
        return found.crc32 == contents.crc32_of(whole)
    return contents.sha256_of(s3.download(bucket, key)) == contents.sha256_of(whole)
