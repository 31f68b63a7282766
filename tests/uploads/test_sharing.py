"""Several processes are given the same files: each file is uploaded by one of them."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from locks import Lease, leases
from tests.faults.kinds import Meanwhile
from tests.locks.items import abandoned, put, stored, taken, unaware
from tests.requests import Requests
from tests.uploads.samples import (
    LARGE_BYTES,
    Storage,
    Uploaded,
    all_rows,
    content,
    locks,
    remove_locks,
)
from tests.waiting import wait_until
from uploads import claims, contents
from uploads.claims import Claim
from uploads.exceptions import ClaimLost
from uploads.sources import Source

pytestmark = pytest.mark.usefixtures("engine")

OTHERS_LOCK = "uploads#other"
LEASE_SECONDS = 60


@contextmanager
def other_process(bucket: str, *files: Source) -> Iterator[list[Claim]]:
    """A live process that has claimed these files; yields its claims."""
    lease = taken(OTHERS_LOCK)
    try:
        yield [_claimed(bucket, file, lease) for file in files]
    finally:
        lease.release(remove=True)


def _claimed(bucket: str, file: Source, lease: Lease) -> Claim:
    claim = claims.take(f"s3://{bucket}/{file.key}", file.size, lease)
    assert isinstance(claim, Claim)
    return claim


def _dead(bucket: str, *files: Source, lease_seconds: float = 0.6) -> Lease:
    """A process that claimed these files and died: its lock is never renewed again."""
    lease = abandoned(OTHERS_LOCK, lease_seconds=lease_seconds)
    for file in files:
        _claimed(bucket, file, unaware(lease))
    return lease


@contextmanager
def in_background(bucket: str, *files: Source) -> Iterator[Future[Uploaded]]:
    """A run in a thread, which ends before the block does."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(Uploaded, files, bucket)


def test_a_run_uploads_the_rest_while_it_waits_for_another_process(storage: Storage) -> None:
    theirs, ours = (storage.file(name, name.encode()) for name in ("theirs", "ours"))
    with (
        other_process(storage.bucket, theirs) as (claim,),
        in_background(storage.bucket, theirs, ours) as ended,
    ):
        wait_until(lambda: (storage.row(ours) or {}).get("state") == "done")
        assert not ended.done()
        etag = storage.s3.put_object(Bucket=storage.bucket, Key="in/theirs", Body=b"theirs")["ETag"]
        claims.finish(claim, 6, contents.sha256_of([b"theirs"]), etag)

    assert {result.key: (result.outcome, result.reason) for result in ended.result().results} == {
        "in/ours": ("uploaded", ""),
        "in/theirs": ("skipped", "it was stored before"),
    }
    assert storage.proxy.stored == {"in/ours": 1}
    storage.assert_stored([theirs, ours])


def test_waiting_costs_two_requests_a_look_however_many_files_wait(
    storage: Storage, requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [storage.file(str(number), b"x") for number in range(40)]
    monkeypatch.setattr(claims, "POLL_SECONDS", 0.05)
    with (
        other_process(storage.bucket, *files) as held,
        in_background(storage.bucket, *files) as ended,
    ):
        wait_until(lambda: requests_sent.operations.count("GetItem") >= 10)
        # One claim of each row was refused; since then, one of them at each look.
        sent = Counter(requests_sent.operations)
        looks = sent.pop("GetItem")
        assert sent.total() <= 2 + 2 * len(files) + looks + 5
        for claim in held:
            claims.delete(claim)

    assert ended.result().summary.uploaded == len(files)
    storage.assert_stored(files)


def change(**attributes: Any) -> None:
    put(OTHERS_LOCK, **stored(OTHERS_LOCK) | attributes)


GONE = {
    "its lock is not there": remove_locks,
    "its lock is released": lambda: change(isReleased={"S": "1"}),
    "its lock has another fence": lambda: change(fencingToken={"N": "17"}),
}


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
def test_files_of_a_dead_process_are_taken_over_at_once(storage: Storage, gone: Any) -> None:
    files = [storage.file(name, name.encode()) for name in "abc"]
    _dead(storage.bucket, *files, lease_seconds=3600)
    gone()

    assert storage.upload(*files).outcomes == ["uploaded"] * 3

    remove_locks()
    storage.assert_stored(files)


def test_a_damaged_lock_fails_the_files_of_its_process_alone(storage: Storage) -> None:
    theirs, ours = ([storage.file(name, b"x") for name in names] for names in ("ab", "cd"))
    _dead(storage.bucket, *theirs, lease_seconds=3600)
    change(leaseDuration={"S": "oops"})

    uploaded = storage.upload(*theirs, *ours)

    reason = f"The item '{OTHERS_LOCK}' of locks is damaged: leaseDuration: 'oops'"
    failed = {
        result.key: result.reason for result in uploaded.results if result.outcome == "failed"
    }
    assert failed == {file.key: reason for file in theirs}
    assert uploaded.summary.uploaded == 2
    assert locks() == [OTHERS_LOCK]


def test_a_dead_process_is_watched_once_for_all_files(
    storage: Storage, requests_sent: Requests
) -> None:
    files = [storage.file(str(number), b"x") for number in range(12)]
    began = time.monotonic()
    _dead(storage.bucket, *files, lease_seconds=0.6)

    uploaded = storage.upload(*files)

    assert uploaded.outcomes == ["uploaded"] * 12
    assert time.monotonic() - began >= 0.6
    of_its_lock = [
        operation
        for operation, request in zip(requests_sent.operations, requests_sent.requests, strict=True)
        if request.get("Key") == {"key": {"S": OTHERS_LOCK}}
    ]
    # Taken by itself, each file would have been a watch, and a removal, of its own.
    assert of_its_lock.count("DeleteItem") == 1
    assert of_its_lock[-1] == "DeleteItem"
    # Its lock is removed, so that the next process need not watch.
    storage.assert_stored(files)


def test_two_runs_on_one_folder_share_the_work(storage: Storage) -> None:
    files = [storage.file(f"{number:02}", content(100, number)) for number in range(30)]
    files.append(storage.file("big", content(LARGE_BYTES)))

    with in_background(storage.bucket, *files) as ended:
        summary = storage.upload(*files).summary

    for outcome in ("uploaded", "skipped"):
        assert getattr(summary, outcome) + getattr(ended.result().summary, outcome) == len(files)
    assert storage.proxy.stored == {file.key: 1 for file in files}
    storage.assert_stored(files)


@pytest.mark.parametrize(
    ("operation", "size"),
    [("UploadPart", LARGE_BYTES), ("PutObject", 100), ("CompleteMultipartUpload", LARGE_BYTES)],
)
def test_a_run_that_lost_its_lease_takes_another_and_counts_what_it_stored_before(
    storage: Storage,
    operation: str,
    size: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = storage.file("a", content(size))
    # Noticed within a second, and no stall is long enough to lose another one.
    monkeypatch.setattr(leases, "RENEWED_AFTER", 0.01)

    def break_its_lock() -> None:
        remove_locks()
        wait_until(lambda: "is lost" in caplog.text)

    storage.proxy.plan(operation, Meanwhile(break_its_lock))

    uploaded = storage.upload(file, lease_seconds=LEASE_SECONDS)

    assert uploaded.outcomes == ["uploaded"]
    assert storage.proxy.stored == {"in/a": 1}
    storage.assert_stored([file])


class _Stop(threading.Event):
    """Counts how often it was found to be set."""

    times_noticed = 0

    def is_set(self) -> bool:
        is_set = super().is_set()
        self.times_noticed += is_set
        return is_set

    def set_and_noticed(self) -> None:
        self.set()
        # When it is checked again, the first check has taken effect.
        wait_until(lambda: self.times_noticed >= 2)


def test_stopping_leaves_a_large_file_with_its_parts_to_the_next_run(storage: Storage) -> None:
    large = storage.file("large", content(2 * LARGE_BYTES))
    stop = _Stop()
    storage.proxy.plan(
        "UploadPart", Meanwhile(stop.set_and_noticed), when=lambda seen: seen["partNumber"] == "2"
    )

    stopped = storage.upload(large, stop=stop, workers=1)

    assert stopped.results == []
    assert stopped.summary.uploaded == stopped.summary.failed == 0
    (row,) = all_rows()
    assert row["state"] == "uploading"
    assert row.keys() & {"lease", "fence", "uploadId"} == {"uploadId"}
    assert locks() == []
    assert 2 <= storage.proxy.count("UploadPart") < 5

    assert storage.upload(large).outcomes == ["uploaded"]

    assert storage.proxy.count("UploadPart") == 5
    storage.assert_stored([large])


def test_stopping_finishes_a_small_file_and_starts_no_other(storage: Storage) -> None:
    files = [storage.file(name, b"x") for name in "ab"]
    stop = _Stop()
    storage.proxy.plan("PutObject", Meanwhile(stop.set_and_noticed))

    stopped = storage.upload(*files, stop=stop, workers=1)

    assert stopped.outcomes == ["uploaded"]
    assert len(all_rows()) == 1
    assert locks() == []


def test_a_holder_whose_row_was_taken_over_cannot_write_it(storage: Storage) -> None:
    file = storage.file("a", b"x")
    late = _claimed(storage.bucket, file, abandoned(OTHERS_LOCK))
    claims.take(late.url, file.size, abandoned("uploads#after"), late.holder)
    row = storage.row(file)

    claims.delete(late)
    claims.release(late)
    with pytest.raises(ClaimLost):
        claims.record_upload(late, "id")
    with pytest.raises(ClaimLost):
        claims.finish(late, 1, "sha256", "etag")

    assert storage.row(file) == row
    assert (row or {})["lease"] == "uploads#after"


def test_a_run_that_waits_for_another_can_be_stopped(storage: Storage) -> None:
    file = storage.file("a", b"x")
    stop = threading.Event()
    with other_process(storage.bucket, file):
        threading.Timer(0.3, stop.set).start()

        stopped = storage.upload(file, stop=stop)

        assert stopped.results == []
        assert (storage.row(file) or {}).get("lease") == OTHERS_LOCK
        assert locks() == [OTHERS_LOCK]
