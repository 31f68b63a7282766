"""Uploads a large file in parts. An interrupted upload continues from the stored parts.

The row names the multipart upload from its creation on. A run that resumes it reads every part from
disk and sends those that S3 does not have with the same size and SHA-256. CompleteMultipartUpload
names the checksum of every part, so a part that another process changed is not used.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace

from dynamo import DynamoError
from uploads import claims
from uploads.claims import Claim
from uploads.contents import OpenFile, Span, composite_of, parts_of
from uploads.exceptions import ClaimLost, Interrupted
from web import s3
from web.s3 import Part, PartChanged, StorageFailed, UploadGone

#: How often parts are sent again because one of them was changed.
TRIES = 3


@dataclass(frozen=True)
class PartSenders:
    """The threads that send parts.

    `ahead`: how many parts of one file may wait for a thread. `halt`: set to stop between two
    parts. `sent`: called, from any thread, with the number of bytes of each part that S3 has.
    """

    threads: Executor
    ahead: int
    halt: threading.Event
    sent: Callable[[int], None]


class MultipartUploads:
    """The multipart uploads of one key. `claim` is the current state of its row.

    Every method raises `LeaseLost` or `ClaimLost` if the row may name another process, which may
    have an upload of its own.
    """

    def __init__(self, claim: Claim, bucket: str, key: str, senders: PartSenders) -> None:
        self.claim = claim
        #: Whether CompleteMultipartUpload was sent, so that an object may be the result.
        self.may_be_completed = False
        self._bucket = bucket
        self._key = key
        self._senders = senders

    def abort_others(self) -> None:
        """Abort every upload of the key that the row does not name.

        They are left by a process that died, or got no reply, after creating one. Costs nothing if
        there cannot be any, otherwise 1 request to list them and 1 for each.
        """
        if self.claim.is_only_upload:
            return
        for upload_id in s3.list_uploads(self._bucket, self._key):
            if upload_id != self.claim.upload_id:
                self.claim.lease.check()
                s3.abort_upload(self._bucket, self._key, upload_id)
        self.claim = replace(self.claim, is_only_upload=True)

    def abort(self) -> None:
        """Abort the upload that the row names, if there is one, and remove its parts."""
        if self.claim.upload_id is not None:
            self.claim.lease.check()
            s3.abort_upload(self._bucket, self._key, self.claim.upload_id)
            self.claim = replace(self.claim, upload_id=None)

    def abort_all(self) -> None:
        self.abort()
        self.abort_others()

    def store(self, file: OpenFile) -> tuple[str, str]:
        """Upload the file, or the rest of it. Returns the object's ETag and checksum.

        Costs 1 request to create the upload and 1 to record it, or 1 to list its parts; 1 for each
        part to send; and 1 to complete.

        Raises:
            FileChanged, Unreadable: see `OpenFile`.
            Interrupted: the run was told to stop; stored parts are kept.
            ObjectExists, UploadGone, StorageBusy: see `s3.complete_upload`.
            StorageFailed: S3 refused, or did not answer; stored parts are kept.
        """
        upload_id, stored = self._resume() or self._create()
        for attempt in itertools.count(1):
            sent = self._send_parts(file, upload_id, stored)
            file.assert_unchanged()
            self.claim.lease.check()
            self.may_be_completed = True
            try:
                etag = s3.complete_upload(self._bucket, self._key, upload_id, sent)
            except PartChanged:
                # A process from which we took over was frozen while it sent the part.
                if attempt >= TRIES:
                    raise
                stored = s3.list_parts(self._bucket, self._key, upload_id)
            else:
                return etag, composite_of([part.sha256 or "" for part in sent])
        raise AssertionError("unreachable: the loop ends by return or raise")

    def _resume(self) -> tuple[str, Mapping[int, Part]] | None:
        upload_id = self.claim.upload_id
        if upload_id is None:
            return None
        try:
            return upload_id, s3.list_parts(self._bucket, self._key, upload_id)
        except UploadGone:
            return None  # aborted: the caller saw that there is no object

    def _create(self) -> tuple[str, Mapping[int, Part]]:
        self.claim.lease.check()
        # If the reply is lost, there is an upload whose id is unknown.
        self.claim = replace(self.claim, is_only_upload=False)
        upload_id, was_repeated = s3.create_upload(self._bucket, self._key)
        try:
            self.claim = claims.record_upload(self.claim, upload_id)
        except (ClaimLost, DynamoError):
            # If the id was recorded all the same, the next run finds that the upload is gone.
            with suppress(StorageFailed):
                s3.abort_upload(self._bucket, self._key, upload_id)
            raise
        if was_repeated:
            self.abort_others()
        self.claim = replace(self.claim, is_only_upload=True)
        return upload_id, {}

    def _send_parts(self, file: OpenFile, upload_id: str, stored: Mapping[int, Part]) -> list[Part]:
        sent: list[Part] = []
        waiting: deque[Future[Part]] = deque()
        try:
            for number, (offset, length) in enumerate(parts_of(file.size), 1):
                if len(waiting) >= self._senders.ahead:
                    sent.append(waiting.popleft().result())
                span = Span(file, offset, length)
                waiting.append(
                    self._senders.threads.submit(
                        self._send_part, upload_id, number, span, stored.get(number)
                    )
                )
            sent += [each.result() for each in waiting]
        finally:
            for each in waiting:
                each.cancel()
            wait(waiting)
        return sent

    def _send_part(self, upload_id: str, number: int, span: Span, stored: Part | None) -> Part:
        if self._senders.halt.is_set():
            raise Interrupted
        sha256 = span.sha256
        if stored is None or (stored.size, stored.sha256) != (len(span), sha256):
            self.claim.lease.check()
            stored = s3.send_part(self._bucket, self._key, upload_id, number, span, sha256)
        self._senders.sent(len(span))
        return stored
