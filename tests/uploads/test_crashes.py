"""A process is killed between any two requests: the next run completes its work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.forked import Forked
from tests.items import insert
from tests.requests import set_by
from tests.uploads import worker
from tests.uploads.s3_proxy import S3Answer
from tests.uploads.samples import (
    LARGE_BYTES,
    PART_BYTES,
    Storage,
    content,
    part_checksums,
    remove_locks,
)
from tests.waiting import wait_until
from uploads import contents

#: Longer than a process under load stands still.
LEASE_SECONDS = 4.0

SMALL_BYTES = 1000


def _values(request: dict[str, Any]) -> dict[str, Any]:
    """What an update sets in a row of `uploads`."""
    return set_by(request) if request["TableName"] == "uploads" else {}


def _is_claim(request: dict[str, Any]) -> bool:
    return _values(request).get("state") == {"S": "uploading"}


def _is_done(request: dict[str, Any]) -> bool:
    return _values(request).get("state") == {"S": "done"}


def _is_upload_id(request: dict[str, Any]) -> bool:
    return "uploadId" in _values(request)


def _is_part(number: int) -> Any:
    return lambda request: request["partNumber"] == str(number)


def _any(_request: dict[str, Any]) -> bool:
    return True


@contextmanager
def stopped_at(
    storage: Storage,
    proxy: FaultProxy,
    operation: str,
    when: Any,
    number: int,
    then: Callable[[], None] = lambda: None,
) -> Iterator[Forked]:
    """A process that uploads the folder and got this signal when it had sent that request."""
    started: list[Forked] = []
    stopped = threading.Event()

    def stop() -> None:
        started[0].send_signal(number)
        stopped.set()
        then()

    proxy.plan(operation, Meanwhile(stop), when=when)
    with worker.started(storage.folder, storage.bucket, lease_seconds=LEASE_SECONDS) as process:
        started.append(process)
        assert stopped.wait(120)
        yield process


#: The request after which the process is killed, the state of its row then, and how many parts the
#: next run sends.
CRASHES = [
    pytest.param(SMALL_BYTES, "UpdateItem", _is_claim, "uploading", 0, id="claim | PUT"),
    pytest.param(SMALL_BYTES, "PutObject", _any, "uploading", 0, id="PUT | done"),
    pytest.param(SMALL_BYTES, "UpdateItem", _is_done, "done", 0, id="done | end"),
    pytest.param(LARGE_BYTES, "UpdateItem", _is_claim, "uploading", 3, id="claim | Create"),
    pytest.param(LARGE_BYTES, "CreateMultipartUpload", _any, "uploading", 3, id="Create | record"),
    pytest.param(LARGE_BYTES, "UpdateItem", _is_upload_id, "uploading", 3, id="record | parts"),
    pytest.param(LARGE_BYTES, "UploadPart", _is_part(2), "uploading", 1, id="amid the parts"),
    pytest.param(LARGE_BYTES, "UploadPart", _is_part(3), "uploading", 0, id="parts | Complete"),
    pytest.param(
        LARGE_BYTES, "CompleteMultipartUpload", _any, "uploading", 0, id="Complete | done"
    ),
    pytest.param(LARGE_BYTES, "UpdateItem", _is_done, "done", 0, id="large: done | end"),
]


@pytest.mark.parametrize(("size", "operation", "when", "state", "parts"), CRASHES)
def test_after_a_kill_at_any_request_the_next_run_completes_the_work(
    storage: Storage,
    proxy: FaultProxy,
    size: int,
    operation: str,
    when: Any,
    state: str,
    parts: int,
) -> None:
    file = storage.file("a", content(size))
    through = proxy if operation == "UpdateItem" else storage.proxy
    with stopped_at(storage, through, operation, when, signal.SIGKILL) as process:
        process.communicate()

    def has_arrived() -> bool:
        row = storage.row(file) or {}
        return row.get("state") == state and (when is not _is_upload_id or "uploadId" in row)

    wait_until(has_arrived)
    # Otherwise the next run would wait for the lease: see test_sharing.py.
    remove_locks()
    before = storage.proxy.count("UploadPart")

    uploaded = storage.upload(file)

    assert uploaded.summary.uploaded + uploaded.summary.skipped == 1
    assert storage.proxy.count("UploadPart") - before == parts
    assert storage.proxy.stored == {"in/a": 1}
    storage.assert_stored([file])


def test_multipart_uploads_of_longer_keys_are_not_aborted(storage: Storage) -> None:
    file = storage.file("a", content(SMALL_BYTES))
    for key in ("in/a", "in/a.1", "in/a", "in/b"):
        storage.s3.create_multipart_upload(Bucket=storage.bucket, Key=key)
    _leave_free(storage.bucket, "a")

    storage.upload(file)

    assert storage.open_uploads() == ["in/a.1", "in/b"]


def _leave_free(bucket: str, name: str, **values: Any) -> None:
    """A row as an interrupted run leaves it."""
    from uploads.models import UPLOADING, UploadItem

    insert(UploadItem(f"s3://{bucket}/in/{name}", state=UPLOADING, size=1, **values))


def test_a_file_that_became_small_leaves_no_parts(storage: Storage) -> None:
    file = storage.file("a", content(SMALL_BYTES))
    upload_id = storage.s3.create_multipart_upload(Bucket=storage.bucket, Key="in/a")["UploadId"]
    storage.s3.upload_part(
        Bucket=storage.bucket, Key="in/a", UploadId=upload_id, PartNumber=1, Body=b"part"
    )
    _leave_free(storage.bucket, "a", upload_id=upload_id)

    storage.upload(file)

    storage.assert_stored([file])


def test_a_file_that_became_small_and_cannot_be_stored_leaves_nothing(storage: Storage) -> None:
    file = storage.file("a", content(SMALL_BYTES))
    upload_id = storage.s3.create_multipart_upload(Bucket=storage.bucket, Key="in/a")["UploadId"]
    _leave_free(storage.bucket, "a", upload_id=upload_id)
    storage.proxy.plan("PutObject", S3Answer(403, "AccessDenied"))

    assert storage.upload(file).outcomes == ["failed"]

    storage.assert_untouched(file)


def test_stored_parts_that_differ_from_the_file_are_sent_again(storage: Storage) -> None:
    data = content(LARGE_BYTES)
    file = storage.file("a", data)
    upload_id = storage.s3.create_multipart_upload(
        Bucket=storage.bucket, Key="in/a", ChecksumAlgorithm="SHA256", ChecksumType="COMPOSITE"
    )["UploadId"]
    other = content(PART_BYTES, "other")
    there = {1: data[:PART_BYTES], 2: other, 3: b"short", 7: b"of a larger file"}
    for number, part in there.items():
        storage.s3.upload_part(
            Bucket=storage.bucket,
            Key="in/a",
            UploadId=upload_id,
            PartNumber=number,
            Body=part,
            ChecksumAlgorithm="SHA256",
        )
    _leave_free(storage.bucket, "a", upload_id=upload_id)

    storage.upload(file)

    sent = [
        seen.body["partNumber"] for seen in storage.proxy.seen if seen.operation == "UploadPart"
    ]
    assert sorted(sent) == ["2", "3"]
    storage.assert_stored([file])


def test_a_row_whose_multipart_upload_is_gone_starts_another(storage: Storage) -> None:
    file = storage.file("a", content(LARGE_BYTES))
    upload_id = storage.s3.create_multipart_upload(Bucket=storage.bucket, Key="in/a")["UploadId"]
    storage.s3.abort_multipart_upload(Bucket=storage.bucket, Key="in/a", UploadId=upload_id)
    _leave_free(storage.bucket, "a", upload_id=upload_id)

    assert storage.upload(file).outcomes == ["uploaded"]

    storage.assert_stored([file])


def test_a_part_that_a_frozen_process_writes_late_does_not_get_into_the_object(
    storage: Storage,
) -> None:
    old, new = content(LARGE_BYTES, "old"), content(LARGE_BYTES, "new")
    file = storage.file("a", old)
    late_part = contents.sha256_of([old[PART_BYTES : 2 * PART_BYTES]])
    arrives = threading.Event()

    def the_late_part_arrives() -> None:
        arrives.set()
        wait_until(lambda: late_part in part_checksums(storage.s3, storage.bucket, "in/a"))

    def hold() -> None:
        # The request has left the process; it arrives when another has sent all parts.
        arrives.wait(120)

    storage.proxy.plan("CompleteMultipartUpload", Meanwhile(the_late_part_arrives))
    with stopped_at(
        storage, storage.proxy, "UploadPart", _is_part(2), signal.SIGSTOP, hold
    ) as frozen:
        Path(file.path).write_bytes(new)

        uploaded = storage.upload(file)

        assert uploaded.outcomes == ["uploaded"]
        assert storage.proxy.count("CompleteMultipartUpload") == 2
        frozen.send_signal(signal.SIGCONT)
        said, _err = frozen.communicate(timeout=120)

    # It lost its lease, looked again, and found the file done.
    assert said == "skipped a it was stored before\n"
    assert frozen.returncode == 0
    assert storage.proxy.stored == {"in/a": 1}
    storage.assert_stored([file])


def test_a_holder_that_resumes_after_its_put_arrived_reports_it_as_uploaded(
    storage: Storage,
) -> None:
    file = storage.file("a", content(SMALL_BYTES))
    with stopped_at(storage, storage.proxy, "PutObject", _any, signal.SIGSTOP) as frozen:
        uploaded = storage.upload(file)

        assert uploaded.outcomes == ["skipped"]
        frozen.send_signal(signal.SIGCONT)
        said, _err = frozen.communicate(timeout=120)

    # The other only wrote it down.
    assert said == "uploaded a \n"
    assert storage.proxy.stored == {"in/a": 1}
    storage.assert_stored([file])
