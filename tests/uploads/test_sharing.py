"""Several processes are given the same files: each file is uploaded by one of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dynamo.client.sending import send
from locks import leases
from locks.leases import Lease
from tests.faults.kinds import Meanwhile
from tests.locks.items import abandoned, renewed_at_each_look, taken, unaware
from tests.requests import Requests
from tests.uploads.s3_proxy import S3Proxy
from tests.uploads.samples import (
    LARGE_BYTES,
    Uploaded,
    all_rows,
    assert_stored,
    content,
    file_of,
    locks,
    open_uploads,
    remove_locks,
    row_of,
    upload,
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
def in_background(bucket: str, *files: Source) -> Iterator[list[Uploaded]]:
    """A run in a thread; yields a list that has the ended run after the block."""
    ended: list[Uploaded] = []
    thread = threading.Thread(target=lambda: ended.append(upload(bucket, *files)))
    thread.start()
    try:
        yield ended
    finally:
        thread.join()


def test_a_run_waits_for_a_file_of_another_process_and_uploads_the_rest_meanwhile(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    theirs, ours = (file_of(tmp_path, name, name.encode()) for name in ("theirs", "ours"))
    with other_process(bucket, theirs) as (claim,), in_background(bucket, theirs, ours) as ended:
        wait_until(lambda: (row_of(bucket, ours) or {}).get("state") == "done")
        assert not ended
        etag = s3.put_object(Bucket=bucket, Key="in/theirs", Body=b"theirs")["ETag"]
        claims.finish(claim, 6, contents.sha256_of([b"theirs"]), etag)

    by_name = {Path(each.name).name: each for each in ended[0].results}
    assert by_name["ours"].outcome == "uploaded"
    assert (by_name["theirs"].outcome, by_name["theirs"].reason) == (
        "skipped",
        "it was stored before",
    )
    assert s3_proxy.stored == {"in/ours": 1}
    assert_stored(s3, bucket, [theirs, ours])


def test_waiting_costs_two_requests_a_look_however_many_files_wait(
    bucket: str,
    s3: Any,
    s3_proxy: S3Proxy,
    tmp_path: Path,
    requests_sent: Requests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [file_of(tmp_path, str(number), b"x") for number in range(40)]
    monkeypatch.setattr(claims, "POLL_SECONDS", 0.05)
    with other_process(bucket, *files) as held, in_background(bucket, *files) as ended:
        wait_until(lambda: requests_sent.operations.count("GetItem") >= 10)
        # One claim of each row was refused; since then, one of them at each look.
        sent = Counter(requests_sent.operations)
        looks = sent.pop("GetItem")
        assert sent.total() <= 2 + 2 * len(files) + looks + 5
        for claim in held:
            claims.delete(claim)

    assert ended[0].summary.uploaded == len(files)
    assert_stored(s3, bucket, files)


def _absent() -> None:
    send("DeleteItem", {"TableName": "locks", "Key": {"key": {"S": OTHERS_LOCK}}})


def _set(expression: str, value: dict[str, str]) -> None:
    send(
        "UpdateItem",
        {
            "TableName": "locks",
            "Key": {"key": {"S": OTHERS_LOCK}},
            "UpdateExpression": f"SET {expression} = :value",
            "ExpressionAttributeValues": {":value": value},
        },
    )


GONE = {
    "its lock is not there": _absent,
    "its lock is released": lambda: _set("isReleased", {"S": "1"}),
    "its lock has another fence": lambda: _set("fencingToken", {"N": "17"}),
}


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
def test_files_of_a_process_that_is_gone_are_taken_over_at_once(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path, gone: Any
) -> None:
    files = [file_of(tmp_path, name, name.encode()) for name in "abc"]
    _dead(bucket, *files, lease_seconds=3600)
    gone()

    assert upload(bucket, *files).outcomes == ["uploaded"] * 3

    _absent()
    assert_stored(s3, bucket, files)


def test_a_damaged_lock_fails_the_files_of_its_process_and_the_rest_is_uploaded(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    theirs, ours = ([file_of(tmp_path, name, b"x") for name in names] for names in ("ab", "cd"))
    _dead(bucket, *theirs, lease_seconds=3600)
    _set("leaseDuration", {"S": "oops"})

    uploaded = upload(bucket, *theirs, *ours)

    failed = [each for each in uploaded.results if each.outcome == "failed"]
    assert {each.key for each in failed} == {file.key for file in theirs}
    assert {each.reason for each in failed} == {
        f"The item '{OTHERS_LOCK}' of locks is damaged: leaseDuration is 'oops'"
    }
    assert uploaded.summary.uploaded == 2
    assert locks() == [OTHERS_LOCK]


def test_a_dead_process_is_watched_for_its_lease_once_for_all_its_files(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path, requests_sent: Requests
) -> None:
    files = [file_of(tmp_path, str(number), b"x") for number in range(12)]
    began = time.monotonic()
    _dead(bucket, *files, lease_seconds=0.6)

    uploaded = upload(bucket, *files)

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
    assert_stored(s3, bucket, files)


def test_a_living_process_keeps_its_files_for_longer_than_its_lease(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "a", b"x")
    lease = _dead(bucket, file, lease_seconds=0.5)
    with renewed_at_each_look(lease), in_background(bucket, file) as ended:
        began = time.monotonic()
        while time.monotonic() - began < 2:
            assert (row_of(bucket, file) or {}).get("lease") == OTHERS_LOCK
            time.sleep(0.05)
        assert not ended
        lease.release(remove=True)

    assert ended[0].outcomes == ["uploaded"]
    assert_stored(s3, bucket, [file])


def test_an_upload_that_a_dead_process_did_not_record_is_aborted(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "a", b"small")
    _dead(bucket, file)
    s3.create_multipart_upload(Bucket=bucket, Key="in/a")
    assert open_uploads(s3, bucket) == ["in/a"]

    upload(bucket, file)

    assert_stored(s3, bucket, [file])


def test_two_runs_on_one_folder_share_the_work(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    files = [file_of(tmp_path, f"{number:02}", content(100, number)) for number in range(30)]
    files.append(file_of(tmp_path, "big", content(LARGE_BYTES)))

    with in_background(bucket, *files) as first, in_background(bucket, *files) as second:
        pass

    summaries = [first[0].summary, second[0].summary]
    assert sum(summary.uploaded for summary in summaries) == len(files)
    assert sum(summary.skipped for summary in summaries) == len(files)
    assert all(count == 1 for count in s3_proxy.stored.values())
    assert_stored(s3, bucket, files)


@pytest.fixture
def break_its_lock(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[[], None]:
    """Deletes the lock of the running upload, and returns when its heartbeat has noticed."""
    # Noticed within a second, and no stall is long enough to lose another one.
    monkeypatch.setattr(leases, "RENEWED_AFTER", 0.01)

    def break_it() -> None:
        remove_locks()
        wait_until(lambda: "is lost" in caplog.text)

    return break_it


def test_a_run_that_lost_its_lease_takes_another_and_continues(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path, break_its_lock: Callable[[], None]
) -> None:
    files = [file_of(tmp_path, name, content(LARGE_BYTES, name)) for name in "ab"]
    s3_proxy.plan("UploadPart", Meanwhile(break_its_lock))

    uploaded = upload(bucket, *files, workers=2, lease_seconds=LEASE_SECONDS)

    assert uploaded.outcomes == ["uploaded"] * 2
    assert_stored(s3, bucket, files)


@pytest.mark.parametrize(
    ("operation", "size"), [("PutObject", 100), ("CompleteMultipartUpload", LARGE_BYTES)]
)
def test_a_file_stored_before_the_lease_was_lost_counts_as_uploaded(
    operation: str,
    size: int,
    bucket: str,
    s3: Any,
    s3_proxy: S3Proxy,
    tmp_path: Path,
    break_its_lock: Callable[[], None],
) -> None:
    file = file_of(tmp_path, "a", content(size))
    s3_proxy.plan(operation, Meanwhile(break_its_lock))

    uploaded = upload(bucket, file, lease_seconds=LEASE_SECONDS)

    assert uploaded.outcomes == ["uploaded"]
    assert s3_proxy.stored == {"in/a": 1}
    assert_stored(s3, bucket, [file])


class _Stop(threading.Event):
    """Counts how often it was found to be set."""

    times_noticed = 0

    def is_set(self) -> bool:
        is_set = super().is_set()
        self.times_noticed += is_set
        return is_set


def test_stopping_finishes_what_is_small_and_leaves_the_rest_to_the_next_run(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    large = file_of(tmp_path, "large", content(2 * LARGE_BYTES))
    stop = _Stop()

    def stop_now() -> None:
        stop.set()
        # When it is checked again, the first check has taken effect.
        wait_until(lambda: stop.times_noticed >= 2)

    s3_proxy.plan("UploadPart", Meanwhile(stop_now), when=lambda seen: seen["partNumber"] == "2")
    stopped = upload(bucket, large, stop=stop, workers=1)

    assert stopped.results == []
    assert stopped.summary.uploaded == stopped.summary.failed == 0
    (row,) = all_rows()
    assert row["state"] == "uploading"
    assert row.keys() & {"lease", "fence", "uploadId"} == {"uploadId"}
    assert locks() == []
    sent = s3_proxy.count("UploadPart")
    assert 2 <= sent < 5

    assert upload(bucket, large).outcomes == ["uploaded"]

    assert s3_proxy.count("UploadPart") == 5
    assert_stored(s3, bucket, [large])


def test_a_file_that_waits_for_a_thread_is_not_started_after_a_stop(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    files = [file_of(tmp_path, name, b"x") for name in "ab"]
    stop = _Stop()

    def stop_now() -> None:
        stop.set()
        wait_until(lambda: stop.times_noticed >= 2)

    s3_proxy.plan("PutObject", Meanwhile(stop_now))

    stopped = upload(bucket, *files, stop=stop, workers=1)

    assert stopped.outcomes == ["uploaded"]
    assert len(all_rows()) == 1
    assert locks() == []


def test_a_holder_whose_row_was_taken_over_cannot_write_it(engine: str, tmp_path: Path) -> None:
    file = file_of(tmp_path, "a", b"x")
    before, after = taken(OTHERS_LOCK), taken("uploads#after")
    try:
        late = _claimed("bucket", file, before)
        claims.take(late.url, file.size, after, late.holder)
        row = row_of("bucket", file)

        claims.delete(late)
        claims.release(late)
        with pytest.raises(ClaimLost):
            claims.record_upload(late, "id")
        with pytest.raises(ClaimLost):
            claims.finish(late, 1, "sha256", "etag")

        assert row_of("bucket", file) == row
        assert (row or {})["lease"] == "uploads#after"
    finally:
        before.release(remove=True)
        after.release(remove=True)


def test_a_run_that_waits_for_another_can_be_stopped(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "a", b"x")
    stop = threading.Event()
    with other_process(bucket, file):
        threading.Timer(0.3, stop.set).start()

        stopped = upload(bucket, file, stop=stop)

        assert stopped.results == []
        assert (row_of(bucket, file) or {}).get("lease") == OTHERS_LOCK
        assert locks() == [OTHERS_LOCK]
