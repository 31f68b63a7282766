"""A process is killed between any two requests: the next run completes its work."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.forked import Forked
from tests.uploads import worker
from tests.uploads.s3_proxy import S3Answer, S3Proxy
from tests.uploads.samples import (
    LARGE_BYTES,
    assert_stored,
    assert_untouched,
    content,
    file_of,
    open_uploads,
    part_checksums,
    remove_locks,
    row_of,
    upload,
)
from tests.waiting import wait_until
from uploads import contents
from uploads.contents import MIB

#: Longer than a process under load stands still.
LEASE_SECONDS = 4.0

SMALL_BYTES = 1000


def _values(request: dict[str, Any]) -> dict[str, Any]:
    """What an update sets in a row of `uploads`."""
    values: dict[str, Any] = request["ExpressionAttributeValues"]
    return values if request["TableName"] == "uploads" else {}


def _is_claim(request: dict[str, Any]) -> bool:
    return _values(request).get(":state") == {"S": "uploading"}


def _is_done(request: dict[str, Any]) -> bool:
    return _values(request).get(":state") == {"S": "done"}


def _is_note(request: dict[str, Any]) -> bool:
    return ":uploadId" in _values(request)


def _is_part(number: int) -> Any:
    return lambda request: request["partNumber"] == str(number)


def _any(_request: dict[str, Any]) -> bool:
    return True


#: After which request the process is killed, what stands in the table then, and how many parts
#: the next run sends.
CRASHES = [
    pytest.param(SMALL_BYTES, "UpdateItem", _is_claim, "uploading", 0, id="claim | PUT"),
    pytest.param(SMALL_BYTES, "PutObject", _any, "uploading", 0, id="PUT | done"),
    pytest.param(SMALL_BYTES, "UpdateItem", _is_done, "done", 0, id="done | end"),
    pytest.param(LARGE_BYTES, "UpdateItem", _is_claim, "uploading", 3, id="claim | Create"),
    pytest.param(LARGE_BYTES, "CreateMultipartUpload", _any, "uploading", 3, id="Create | note"),
    pytest.param(LARGE_BYTES, "UpdateItem", _is_note, "uploading", 3, id="note | parts"),
    pytest.param(LARGE_BYTES, "UploadPart", _is_part(2), "uploading", 1, id="amid the parts"),
    pytest.param(LARGE_BYTES, "UploadPart", _is_part(3), "uploading", 0, id="parts | Complete"),
    pytest.param(
        LARGE_BYTES, "CompleteMultipartUpload", _any, "uploading", 0, id="Complete | done"
    ),
    pytest.param(LARGE_BYTES, "UpdateItem", _is_done, "done", 0, id="large: done | end"),
]


@pytest.mark.parametrize(("size", "operation", "when", "state", "parts"), CRASHES)
def test_a_process_killed_after_any_request_is_followed_by_one_that_completes_its_work(
    bucket: str,
    s3: Any,
    s3_proxy: S3Proxy,
    proxy: FaultProxy,
    tmp_path: Path,
    size: int,
    operation: str,
    when: Any,
    state: str,
    parts: int,
) -> None:
    file = file_of(tmp_path, "a", content(size))
    started: list[Forked] = []
    killed = threading.Event()

    def kill() -> None:
        started[0].kill()
        killed.set()

    through = proxy if operation == "UpdateItem" else s3_proxy
    through.plan(operation, Meanwhile(kill), when=when)
    with worker.started(tmp_path, bucket, lease_seconds=LEASE_SECONDS) as process:
        started.append(process)
        assert killed.wait(120)
        process.communicate()

    def has_arrived() -> bool:
        row = row_of(bucket, file) or {}
        return row.get("state") == state and (when is not _is_note or "uploadId" in row)

    wait_until(has_arrived)
    # Otherwise the next run would wait for the lease: see test_sharing.py.
    remove_locks()
    before = s3_proxy.count("UploadPart")

    uploaded = upload(bucket, file)

    assert uploaded.summary.uploaded + uploaded.summary.skipped == 1
    assert s3_proxy.count("UploadPart") - before == parts
    assert s3_proxy.stored == {"in/a": 1}
    assert_stored(s3, bucket, [file])


def test_multipart_uploads_of_longer_keys_are_not_aborted(
    bucket: str, s3: Any, s3_proxy: S3Proxy, proxy: FaultProxy, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "a", content(SMALL_BYTES))
    for key in ("in/a", "in/a.1", "in/a", "in/b"):
        s3.create_multipart_upload(Bucket=bucket, Key=key)
    _leave_free(bucket, "a")

    upload(bucket, file)

    assert open_uploads(s3, bucket) == ["in/a.1", "in/b"]


def _leave_free(bucket: str, name: str, **values: Any) -> None:
    """A row as an interrupted run leaves it."""
    from uploads.models import UPLOADING, UploadItem

    UploadItem(f"s3://{bucket}/in/{name}", state=UPLOADING, size=1, **values).insert()


def test_a_file_that_became_small_leaves_no_parts(
    bucket: str, s3: Any, s3_proxy: S3Proxy, proxy: FaultProxy, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "a", content(SMALL_BYTES))
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key="in/a")["UploadId"]
    s3.upload_part(Bucket=bucket, Key="in/a", UploadId=upload_id, PartNumber=1, Body=b"part")
    _leave_free(bucket, "a", upload_id=upload_id)

    upload(bucket, file)

    assert_stored(s3, bucket, [file])


def test_a_file_that_became_small_and_cannot_be_stored_leaves_nothing(
    bucket: str, s3: Any, s3_proxy: S3Proxy, proxy: FaultProxy, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "a", content(SMALL_BYTES))
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key="in/a")["UploadId"]
    _leave_free(bucket, "a", upload_id=upload_id)
    s3_proxy.plan("PutObject", S3Answer(403, "AccessDenied"))

    assert upload(bucket, file).outcomes == ["failed"]

    assert_untouched(s3, bucket, file)


def test_stored_parts_that_differ_from_the_file_are_sent_again(
    bucket: str, s3: Any, s3_proxy: S3Proxy, proxy: FaultProxy, tmp_path: Path
) -> None:
    data = content(LARGE_BYTES)
    file = file_of(tmp_path, "a", data)
    upload_id = s3.create_multipart_upload(
        Bucket=bucket, Key="in/a", ChecksumAlgorithm="SHA256", ChecksumType="COMPOSITE"
    )["UploadId"]
    there = {1: data[: 8 * MIB], 2: content(8 * MIB, "other"), 3: b"short", 7: b"of a larger file"}
    for number, part in there.items():
        s3.upload_part(
            Bucket=bucket,
            Key="in/a",
            UploadId=upload_id,
            PartNumber=number,
            Body=part,
            ChecksumAlgorithm="SHA256",
        )
    _leave_free(bucket, "a", upload_id=upload_id)

    upload(bucket, file)

    sent = [seen.body["partNumber"] for seen in s3_proxy.seen if seen.operation == "UploadPart"]
    assert sorted(sent) == ["2", "3"]
    assert_stored(s3, bucket, [file])


def test_a_row_whose_multipart_upload_is_gone_starts_another(
    bucket: str, s3: Any, s3_proxy: S3Proxy, proxy: FaultProxy, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "a", content(LARGE_BYTES))
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key="in/a")["UploadId"]
    s3.abort_multipart_upload(Bucket=bucket, Key="in/a", UploadId=upload_id)
    _leave_free(bucket, "a", upload_id=upload_id)

    assert upload(bucket, file).outcomes == ["uploaded"]

    assert_stored(s3, bucket, [file])


def test_a_part_that_a_frozen_process_writes_late_does_not_get_into_the_object(
    bucket: str, s3: Any, s3_proxy: S3Proxy, proxy: FaultProxy, tmp_path: Path
) -> None:
    old, new = content(LARGE_BYTES, "old"), content(LARGE_BYTES, "new")
    file = file_of(tmp_path, "a", old)
    late_part = contents.sha256_of([old[8 * MIB : 16 * MIB]])
    on_its_way, arrives = threading.Event(), threading.Event()
    started: list[Forked] = []

    def held_up() -> None:
        # The request has left the process; it arrives when another has sent all parts.
        started[0].send_signal(signal.SIGSTOP)
        on_its_way.set()
        arrives.wait(120)

    def the_late_part_arrives() -> None:
        arrives.set()
        wait_until(lambda: late_part in part_checksums(s3, bucket, "in/a"))

    s3_proxy.plan("UploadPart", Meanwhile(held_up), when=_is_part(2))
    s3_proxy.plan("CompleteMultipartUpload", Meanwhile(the_late_part_arrives))
    with worker.started(tmp_path, bucket, lease_seconds=LEASE_SECONDS) as frozen:
        started.append(frozen)
        assert on_its_way.wait(120)
        Path(file.path).write_bytes(new)

        uploaded = upload(bucket, file)

        assert uploaded.outcomes == ["uploaded"]
        assert s3_proxy.count("CompleteMultipartUpload") == 2
        frozen.send_signal(signal.SIGCONT)
        said, _err = frozen.communicate(timeout=120)

    # It lost its lease, looked again, and found the file done.
    assert said == "skipped a it was stored before\n"
    assert frozen.returncode == 0
    assert s3_proxy.stored == {"in/a": 1}
    assert_stored(s3, bucket, [file])


def test_a_holder_that_resumes_after_its_put_arrived_reports_it_as_uploaded(
    bucket: str, s3: Any, s3_proxy: S3Proxy, proxy: FaultProxy, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "a", content(SMALL_BYTES))
    frozen_now = threading.Event()
    started: list[Forked] = []

    def freeze() -> None:
        os.kill(started[0].pid, signal.SIGSTOP)
        frozen_now.set()

    s3_proxy.plan("PutObject", Meanwhile(freeze))
    with worker.started(tmp_path, bucket, lease_seconds=LEASE_SECONDS) as frozen:
        started.append(frozen)
        assert frozen_now.wait(120)

        uploaded = upload(bucket, file)

        assert uploaded.outcomes == ["skipped"]
        frozen.send_signal(signal.SIGCONT)
        said, _err = frozen.communicate(timeout=120)

    # The other only wrote it down.
    assert said == "uploaded a \n"
    assert s3_proxy.stored == {"in/a": 1}
    assert_stored(s3, bucket, [file])
