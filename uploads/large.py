"""Stores a large file in parts that we keep count of: an interrupted upload goes on from them.

The row names the multipart upload from its beginning on. Who resumes it reads every part from disk
and sends those that are not there with the same size and SHA-256; Complete names the checksum of
every part, so a part that somebody else wrote meanwhile does not become part of the object.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace

from dynamo.exceptions import DynamoError
from dynamo.retries import pause_seconds
from uploads import checksums, claims, s3
from uploads.claims import Claim
from uploads.contents import Large, are_equal
from uploads.exceptions import (
    ClaimLost,
    Conflict,
    ObjectExists,
    PartChanged,
    StorageBusy,
    StorageFailed,
    UploadGone,
)
from uploads.reading import Span
from uploads.run import ANOTHER_THERE, Run
from uploads.s3 import Part
from uploads.sizes import parts_of
from uploads.tidying import tidied

#: How often an upload is begun, or resumed, for one file.
BEGINNINGS = 4

#: How often the parts are looked at again because one of them was changed.
LOOKS = 3


class LargeUpload:
    """One file on its way; `claim` is the row as it is, with the upload that it names."""

    def __init__(self, contents: Large, key: str, claim: Claim, run: Run) -> None:
        self.claim = claim
        self._contents = contents
        self._key = key
        self._run = run
        self._was_put_together = False

    def store(self) -> tuple[str, str, bool]:
        """Upload it; the ETag, the checksum, and whether it is by us (else it was there).

        Costs 1 request to look whether it is there, 1 to begin and 1 to write that down, 1 for
        each part, 1 to put them together.

        Raises:
            Conflict: another object has the key.
            FileChanged, Unreadable: the file could not be read as it was.
            Interrupted: we were told to stop; the parts that are there are kept.
            StorageFailed: S3 refused, or gave no answer; likewise.
            LeaseLost, ClaimLost: the row may be, or is, another's.
        """
        for attempt in itertools.count(1):
            found = s3.head(self._run.bucket, self._key)
            if found is not None:
                if not are_equal(self._contents, found, self._run.bucket, self._key):
                    raise Conflict(self._key, ANOTHER_THERE)
                self._forget()
                return found.etag, self._contents.sha256, self._was_put_together
            try:
                return (*self._send_all(), True)
            except (ObjectExists, UploadGone):
                # Somebody put it together: another, or we, and the answer was lost. Or aborted it.
                if attempt >= BEGINNINGS:
                    raise
            except StorageBusy:
                # What S3 asks for: from the beginning.
                self._forget()
                if attempt >= BEGINNINGS:
                    raise
                time.sleep(pause_seconds(attempt))
        raise AssertionError("unreachable: the loop ends by return or raise")

    def _forget(self) -> None:
        if self.claim.upload_id is not None:
            self.claim.lease.check()
            s3.abort(self._run.bucket, self._key, self.claim.upload_id)

    def _send_all(self) -> tuple[str, str]:
        upload_id, there = self._resumed() or self._begun()
        for look in itertools.count(1):
            sent = self._send_parts(upload_id, there)
            self._contents.file.assert_unchanged()
            self.claim.lease.check()
            self._was_put_together = True
            try:
                etag = s3.complete(self._run.bucket, self._key, upload_id, sent)
            except PartChanged:
                # By one who was stopped in the middle of it, and went on after we took over.
                if look >= LOOKS:
                    raise
                there = s3.parts(self._run.bucket, self._key, upload_id)
            else:
                return etag, checksums.composite_of([part.sha256 or "" for part in sent])
        raise AssertionError("unreachable: the loop ends by return or raise")

    def _resumed(self) -> tuple[str, Mapping[int, Part]] | None:
        upload_id = self.claim.upload_id
        if upload_id is None:
            return None
        try:
            return upload_id, s3.parts(self._run.bucket, self._key, upload_id)
        except UploadGone:
            return None  # and no object is there: it was aborted

    def _begun(self) -> tuple[str, Mapping[int, Part]]:
        self.claim.lease.check()
        # Until its id is in the row, and the only one: a lost reply leaves an upload as well.
        self.claim = replace(self.claim, is_tidy=False)
        upload_id, is_repeated = s3.begin(self._run.bucket, self._key)
        try:
            self.claim = claims.note(self.claim, upload_id)
        except (ClaimLost, DynamoError):
            # Where the note arrived all the same, whoever reads it finds the upload gone.
            with suppress(StorageFailed):
                s3.abort(self._run.bucket, self._key, upload_id)
            raise
        if is_repeated:
            self.claim = tidied(self.claim, self._key, self._run, keep=upload_id)
        self.claim = replace(self.claim, is_tidy=True)
        return upload_id, {}

    def _send_parts(self, upload_id: str, there: Mapping[int, Part]) -> list[Part]:
        sent: list[Part] = []
        waiting: deque[Future[Part]] = deque()
        try:
            for number, (offset, length) in enumerate(parts_of(self._contents.size), 1):
                if len(waiting) >= self._run.ahead:
                    sent.append(waiting.popleft().result())
                span = Span(self._contents.file, offset, length)
                waiting.append(
                    self._run.parts.submit(
                        self._send_part, upload_id, number, span, there.get(number)
                    )
                )
            sent += [each.result() for each in waiting]
        finally:
            for each in waiting:
                each.cancel()
            wait(waiting)
        return sent

    def _send_part(self, upload_id: str, number: int, span: Span, there: Part | None) -> Part:
        self._run.go_on()
        sha256 = span.sha256
        if there is None or (there.size, there.sha256) != (len(span), sha256):
            self.claim.lease.check()
            there = s3.send_part(self._run.bucket, self._key, upload_id, number, span, sha256)
        self._run.sent(len(span))
        return there
