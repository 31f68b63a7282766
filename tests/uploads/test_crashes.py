"""A process is killed between any two requests: the next run completes its work."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.items import insert
from tests.requests import set_by
from tests.uploads.s3_proxy import S3Answer
from tests.uploads.samples import (
    LARGE_BYTES,
    PART_BYTES,
    SMALL_BYTES,
    Storage,
    content,
    remove_locks,
)
from tests.waiting import wait_until
from uploads.models import UPLOADING, UploadItem
from uploads.sources import Source


def sets(name: str, value: str | None = None) -> Callable[[dict[str, Any]], bool]:
    """Whether an update sets this in a row of `uploads`."""

    def is_it(request: dict[str, Any]) -> bool:
        values = set_by(request) if request["TableName"] == "uploads" else {}
        return name in values and (value is None or values[name] == {"S": value})

    return is_it


def part(number: int) -> Callable[[dict[str, Any]], bool]:
    return lambda request: request["partNumber"] == str(number)


def anything(_request: dict[str, Any]) -> bool:
    return True


def upload_until_killed(
    storage: Storage, file: Source, proxy: FaultProxy, operation: str, when: Any
) -> None:
    """Upload the file in a fork of this process, which is killed when it has sent that request."""
    pids: list[int] = []
    proxy.plan(operation, Meanwhile(lambda: os.kill(pids[0], signal.SIGKILL)), when=when)
    pids.append(os.fork())
    if not pids[0]:
        try:
            storage.upload(file, workers=1)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]) == -signal.SIGKILL


#: How large the file is, the request after which the process is killed, what the row has then, and
#: how many parts the next run sends.
CRASHES: dict[str, tuple[int, str, Callable[[dict[str, Any]], bool], str, int]] = {
    "claim | PUT": (SMALL_BYTES, "UpdateItem", sets("state", "uploading"), "uploading", 0),
    "PUT | done": (SMALL_BYTES, "PutObject", anything, "uploading", 0),
    "done | end": (SMALL_BYTES, "UpdateItem", sets("state", "done"), "done", 0),
    "claim | Create": (LARGE_BYTES, "UpdateItem", sets("state", "uploading"), "uploading", 3),
    "Create | record": (LARGE_BYTES, "CreateMultipartUpload", anything, "uploading", 3),
    "record | parts": (LARGE_BYTES, "UpdateItem", sets("uploadId"), "uploadId", 3),
    "amid the parts": (LARGE_BYTES, "UploadPart", part(2), "uploading", 1),
    "parts | Complete": (LARGE_BYTES, "UploadPart", part(3), "uploading", 0),
    "Complete | done": (LARGE_BYTES, "CompleteMultipartUpload", anything, "uploading", 0),
    "large: done | end": (LARGE_BYTES, "UpdateItem", sets("state", "done"), "done", 0),
}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("size", "operation", "when", "left", "parts"), CRASHES.values(), ids=CRASHES
)
def test_after_a_kill_at_any_request_the_next_run_completes_the_work(
    storage: Storage, proxy: FaultProxy, size: int, operation: str, when: Any, left: str, parts: int
) -> None:
    file = storage.file("a", content(size))
    through = proxy if operation == "UpdateItem" else storage.proxy
    upload_until_killed(storage, file, through, operation, when)
    # The request arrives after its sender has died.
    wait_until(lambda: left in {**(row := storage.row(file) or {}), row.get("state"): ""})
    # Otherwise the next run would wait for the lease: see test_sharing.py.
    remove_locks()
    before = storage.proxy.count("UploadPart")

    uploaded = storage.upload(file)

    assert uploaded.summary.uploaded + uploaded.summary.skipped == 1
    assert storage.proxy.count("UploadPart") - before == parts
    assert storage.proxy.stored == {"in/a": 1}
    storage.assert_stored([file])


def left_free(storage: Storage, data: bytes, **values: Any) -> Source:
    """A file whose row is as an interrupted run leaves it."""
    file = storage.file("a", data)
    url = f"s3://{storage.bucket}/{file.key}"
    insert(UploadItem(url, state=UPLOADING, size=1, **values))
    return file


def begun(storage: Storage, key: str = "in/a", **options: Any) -> str:
    """The id of a multipart upload that was created."""
    answer = storage.s3.create_multipart_upload(Bucket=storage.bucket, Key=key, **options)
    upload_id: str = answer["UploadId"]
    return upload_id


def test_multipart_uploads_that_no_row_names_are_aborted(storage: Storage) -> None:
    for key in ("in/a", "in/a.1", "in/a", "in/b"):
        begun(storage, key)

    storage.upload(left_free(storage, content(SMALL_BYTES)))

    assert storage.open_uploads() == ["in/a.1", "in/b"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_file_that_became_small_leaves_no_parts(storage: Storage, fails: bool) -> None:
    file = left_free(storage, content(SMALL_BYTES), upload_id=begun(storage))
    if fails:
        storage.proxy.plan("PutObject", S3Answer(403, "AccessDenied"))

    assert storage.upload(file).outcomes == ["failed" if fails else "uploaded"]

    if fails:
        storage.assert_untouched(file)
    else:
        storage.assert_stored([file])


def test_stored_parts_that_differ_from_the_file_are_sent_again(storage: Storage) -> None:
    data = content(LARGE_BYTES)
    upload_id = begun(storage, ChecksumAlgorithm="SHA256", ChecksumType="COMPOSITE")
    other = content(PART_BYTES, "other")
    there = {1: data[:PART_BYTES], 2: other, 3: b"short", 7: b"of a larger file"}
    for number, value in there.items():
        storage.s3.upload_part(
            Bucket=storage.bucket,
            Key="in/a",
            UploadId=upload_id,
            PartNumber=number,
            Body=value,
            ChecksumAlgorithm="SHA256",
        )
    file = left_free(storage, data, upload_id=upload_id)

    storage.upload(file)

    sent = [
        item.body["partNumber"] for item in storage.proxy.seen if item.operation == "UploadPart"
    ]
    assert sorted(sent) == ["2", "3"]
    storage.assert_stored([file])
