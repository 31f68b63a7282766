"""Stores one file: claim its row, put the object, write down that it is done.

A crash between any two of these requests leaves a row that says so, and the next run that has the
file goes on from there: what is in the bucket already is compared, never put again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from dynamo.exceptions import DynamoError, TableMissing
from dynamo.terminal import printable
from locks.exceptions import LeaseLost
from uploads import claims, s3
from uploads.claims import Claim, Holder
from uploads.contents import Contents, Large, Small
from uploads.exceptions import (
    BucketMissing,
    ClaimLost,
    Conflict,
    FileChanged,
    Interrupted,
    StorageFailed,
    Unreadable,
    UploadError,
)
from uploads.files import Source
from uploads.large import LargeUpload
from uploads.models import DONE, UploadItem
from uploads.reading import OpenFile, opened
from uploads.run import ADOPTED, ANOTHER_STORED, STORED_BEFORE, Ending, Run
from uploads.sizes import is_small
from uploads.small import store_small
from uploads.tidying import tidied

log = logging.getLogger(__name__)

#: How often a file is begun again because its row, or the lease of the process, was lost.
TRIES = 4


@dataclass(eq=False)
class Job:
    """A file, and the key that it gets.

    `is_put`: this run stored the object. Where the lease is lost before that is written down, the
    next try finds it in the bucket, or another process does and writes it down.
    """

    source: Source
    key: str
    is_put: bool = False


def store(job: Job, run: Run) -> Ending | Holder:
    """Store the file, or say who is about to: then it is to be tried again later.

    A new small file costs 2 requests, 2 write units and 1 PutObject; one that was stored before
    1 request, 1 write unit, and nothing of S3.

    Raises:
        Interrupted: the run ended before the file did; the row is free.
        BucketMissing, StorageFailed, TableMissing: no file can be stored.
    """
    lost: Exception
    for _try in range(TRIES):
        run.go_on()
        try:
            with opened(job.source.path) as file:
                return _store(file, job, run)
        except (ClaimLost, LeaseLost) as error:
            lost = error
        except (BucketMissing, Interrupted, TableMissing):
            raise
        except Conflict as error:
            return Ending("conflict", job.source.size, _reason(error))
        except (UploadError, DynamoError) as error:
            if isinstance(error, StorageFailed):
                run.assert_reachable()
            return Ending("failed", job.source.size, _reason(error))
    return Ending("failed", job.source.size, _reason(lost))


def _reason(error: Exception) -> str:
    return str(error).removesuffix(".")


def _store(file: OpenFile, job: Job, run: Run) -> Ending | Holder:
    contents: Small | Large
    contents = Small(file.read_whole()) if is_small(file.size) else Large(file)
    url = run.destination.url_for(job.key)
    claim = _claimed(url, contents.size, run)
    if isinstance(claim, Holder):
        return claim
    if isinstance(claim, UploadItem):
        return _compared(contents, claim, job)
    if isinstance(contents, Small):
        _store_small(contents, claim, job, run)
    else:
        _store_large(contents, claim, job, run)
    run.reached.set()
    return _ending(contents, job, otherwise=ADOPTED)


def _claimed(url: str, size: int, run: Run) -> Claim | Holder | UploadItem:
    """The row as ours, or who holds it, or the row that is done."""
    row: UploadItem | None = None
    for _try in range(TRIES):
        lease = run.lease.current()
        if row is None or row.lease is None:  # it became free since we were refused
            answer = claims.take(url, size, lease)
        else:
            answer = claims.take_over(row, size, lease)
        if isinstance(answer, Claim):
            return answer
        row = answer
        if row is not None and row.state == DONE:
            return row
        if row is not None and row.lease and (holder := claims.holder_of(row)) not in run.gone:
            return holder
    raise ClaimLost(url)


def _compared(contents: Contents, row: UploadItem, job: Job) -> Ending:
    """What becomes of a file whose key is done."""
    if row.size != contents.size or row.sha256 != contents.sha256:
        raise Conflict(job.key, ANOTHER_STORED)
    return _ending(contents, job, otherwise=STORED_BEFORE)


def _ending(contents: Contents, job: Job, *, otherwise: str) -> Ending:
    if job.is_put:
        return Ending("uploaded", contents.size)
    return Ending("skipped", contents.size, otherwise)


def _store_small(contents: Small, claim: Claim, job: Job, run: Run) -> None:
    with _given_back(claim, job.key, run) as held:
        held.claim = tidied(claim, job.key, run, keep=None)
        etag, is_ours = store_small(contents, job.key, claim, run)
        job.is_put |= is_ours
        claim.lease.check()
        claims.finish(claim, contents.size, contents.sha256, etag)
    run.sent(contents.size)


def _store_large(contents: Large, claim: Claim, job: Job, run: Run) -> None:
    with _given_back(claim, job.key, run) as held:
        held.claim = tidied(claim, job.key, run, keep=claim.upload_id)
        upload = LargeUpload(contents, job.key, held.claim, run)
        try:
            etag, sha256, is_ours = upload.store()
            job.is_put |= is_ours
        except StorageFailed:
            # S3 refuses what is not as its checksum says: then the file is to blame.
            contents.file.assert_unchanged()
            raise
        finally:
            held.claim = upload.claim
        claim.lease.check()
        claims.finish(held.claim, contents.size, sha256, etag)


@dataclass
class _Held:
    claim: Claim


@contextmanager
def _given_back(claim: Claim, key: str, run: Run) -> Iterator[_Held]:
    """Whatever ends the block in an error, no claim stays open.

    Where the rest may succeed later, the row stays, free, with the parts that are there; else it
    is deleted, and its parts are. A row that may be another's is left alone.
    """
    held = _Held(claim)
    try:
        yield held
    except (ClaimLost, LeaseLost):
        raise
    except (Conflict, FileChanged, Unreadable, BucketMissing):
        _give_back(held.claim, key, run, keep_parts=False)
        raise
    except (UploadError, DynamoError):
        _give_back(held.claim, key, run, keep_parts=True)
        raise


def _give_back(claim: Claim, key: str, run: Run, *, keep_parts: bool) -> None:
    try:
        if keep_parts and (claim.upload_id or not claim.is_tidy):
            claims.let_go(claim)
            return
        with suppress(BucketMissing):  # and its parts are with it
            claim = tidied(claim, key, run, keep=None)
            if claim.upload_id:
                claim.lease.check()
                s3.abort(run.bucket, key, claim.upload_id)
        claims.give_up(claim)
    except LeaseLost:
        return  # it may be another's, who finds out for himself
    except StorageFailed as error:
        log.warning("The parts of %s stay in the bucket: %s", printable(claim.url), error)
        claims.let_go(claim)
    except DynamoError as error:
        # The row names our lock until that is removed, and then nobody.
        log.warning("The claim of %s stays: %s", printable(claim.url), error)
