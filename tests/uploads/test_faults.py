"""S3 and DynamoDB fail: the file is uploaded, or fails with a reason and without an open claim."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kinds import CloseBefore, DropReply, Fault, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.requests import set_by
from tests.uploads.s3_proxy import S3Answer, through
from tests.uploads.samples import LARGE_BYTES, PART_BYTES, SMALL_BYTES, Storage, content, locks
from uploads import s3 as uploads_s3

BUSY = S3Answer(409, "ConditionalRequestConflict")
SLOW_DOWN = S3Answer(503, "SlowDown")

PASSING: list[Fault] = [
    SLOW_DOWN,
    S3Answer(500, "InternalError", carried_out=True),
    CloseBefore(),
    DropReply(),
    BUSY,
]


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        *product(["PutObject", "CompleteMultipartUpload"], PASSING),
        # botocore repeated the request after a lost reply, and these are the second answers.
        ("CompleteMultipartUpload", S3Answer(404, "NoSuchUpload", carried_out=True)),
        ("CompleteMultipartUpload", S3Answer(412, "PreconditionFailed", carried_out=True)),
        *product(["CreateMultipartUpload", "UploadPart", "HeadObject"], [SLOW_DOWN, DropReply()]),
    ],
    ids=str,
)
def test_a_temporary_failure_ends_in_one_object(
    storage: Storage, operation: str, fault: Fault
) -> None:
    file = storage.file("a", content(SMALL_BYTES if operation == "PutObject" else LARGE_BYTES))
    storage.proxy.plan(operation, fault)

    uploaded = storage.upload(file)

    assert uploaded.outcomes == ["uploaded"]
    assert storage.proxy.stored == {"in/a": 1}
    if operation == "CompleteMultipartUpload":
        # After a 409, S3 wants a new upload.
        assert storage.proxy.count("UploadPart") == (6 if fault is BUSY else 3)
    storage.assert_stored([file])


def _is_note(body: dict[str, Any]) -> bool:
    return "uploadId" in set_by(body)


@pytest.mark.parametrize("count", [3, 1], ids=["all replies lost", "neither noted nor aborted"])
def test_uploads_that_a_run_left_behind_are_aborted_by_the_next_run(
    storage: Storage, proxy: FaultProxy, impatient: float, count: int
) -> None:
    file = storage.file("a", content(LARGE_BYTES))
    if count == 3:
        storage.proxy.plan("CreateMultipartUpload", DropReply(), times=99)
    else:
        storage.proxy.plan("AbortMultipartUpload", S3Answer(403, "AccessDenied"))
        proxy.plan("UpdateItem", CloseBefore(), times=10**6, when=_is_note)

    assert storage.upload(file).outcomes == ["failed"]

    assert storage.open_uploads() == ["in/a"] * count
    row = storage.row(file)
    assert row is not None
    assert count == 1 or not row.keys() & {"lease", "fence", "uploadId"}
    for item in (storage.proxy, proxy):
        item.forget()

    assert storage.upload(file).outcomes == ["uploaded"]

    storage.assert_stored([file])


@dataclass(frozen=True)
class _Encoded(S3Answer):
    """The uploads of a bucket as S3 lists them when asked for encoded keys."""

    def body(self) -> bytes:
        return (
            b"<ListMultipartUploadsResult><EncodingType>url</EncodingType>"
            b"<Upload><Key>in/a%0D%2B+b</Key><UploadId>1</UploadId></Upload>"
            b"<Upload><Key>in/a%0D%2B+bc</Key><UploadId>2</UploadId></Upload>"
            b"</ListMultipartUploadsResult>"
        )


def test_keys_with_characters_that_xml_cannot_contain_are_listed_encoded(storage: Storage) -> None:
    storage.proxy.plan("ListMultipartUploads", _Encoded(200, ""))

    assert uploads_s3.list_uploads(storage.bucket, "in/a\r+ b") == ["1"]

    assert storage.proxy.seen[0].body["encoding-type"] == "url"


def test_an_s3_on_localhost_is_sent_the_bucket_in_the_path(s3_url: str, bucket: str) -> None:
    with through(s3_url.replace("127.0.0.1", "localhost")):
        assert uploads_s3.head(bucket, "a") is None


@pytest.mark.parametrize("noticed_by", ["us", "S3"])
def test_a_file_that_changes_leaves_no_multipart_upload(storage: Storage, noticed_by: str) -> None:
    file = storage.file("a", content(LARGE_BYTES))
    plan, change = storage.proxy.plan, Path(file.path).touch
    if noticed_by == "us":
        plan("CreateMultipartUpload", DropReply(), times=2)
        plan("CreateMultipartUpload", Meanwhile(change))
        plan("CreateMultipartUpload", DropReply(), times=99)
    else:
        changed = S3Answer(400, "BadDigest")
        plan("UploadPart", changed, times=99, when=lambda _seen: change() is None)

    assert storage.upload(file).result.reason == "The file changed while it was read"

    storage.assert_untouched(file)


@pytest.mark.parametrize("lost", [None, DropReply(), CloseBefore()], ids=str)
def test_parts_that_a_run_may_not_remove_are_removed_by_the_next_run(
    storage: Storage, proxy: FaultProxy, impatient: float, lost: Fault | None
) -> None:
    file = storage.file("a", content(LARGE_BYTES))
    change = Path(file.path).touch
    changed = S3Answer(400, "BadDigest")
    storage.proxy.plan("UploadPart", changed, times=99, when=lambda _seen: change() is None)
    storage.proxy.plan("AbortMultipartUpload", S3Answer(403, "AccessDenied"))
    if lost:
        proxy.plan("UpdateItem", lost, times=10**6, when=lambda body: not set_by(body))

    [result] = storage.upload(file).results

    assert result.reason == "The file changed while it was read"
    assert storage.open_uploads() == ["in/a"]
    row = storage.row(file)
    assert row is not None
    for item in (storage.proxy, proxy):
        item.forget()
    assert storage.upload(file).outcomes == ["uploaded"]
    storage.assert_stored([file])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (SLOW_DOWN, "S3 PutObject failed: SlowDown: planned by a test"),
        (BUSY, "S3 PutObject failed: ConditionalRequestConflict: planned by a test"),
        (S3Answer(403, "AccessDenied"), "S3 PutObject failed: AccessDenied: planned by a test"),
        (S3Answer(400, "BadDigest"), "S3 PutObject failed: BadDigest: planned by a test"),
        (CloseBefore(), "S3 PutObject failed: ConnectionClosedError: Connection was closed"),
    ],
    ids=["SlowDown", "busy", "AccessDenied", "BadDigest", "reset"],
)
def test_a_lasting_failure_has_a_reason_and_leaves_no_claim_and_the_rest_is_stored(
    storage: Storage, fault: Fault, reason: str
) -> None:
    bad, fine = (storage.file(name, name.encode()) for name in ("bad", "fine"))
    storage.proxy.plan("PutObject", fault, times=99, when=lambda seen: seen["key"] == "in/bad")

    uploaded = storage.upload(bad, fine)

    by_name = {Path(result.name).name: result for result in uploaded.results}
    assert by_name["bad"].outcome == "failed"
    assert by_name["bad"].reason.startswith(reason)
    assert by_name["fine"].outcome == "uploaded"
    assert storage.row(bad) is None
    storage.assert_stored([fine])


def _overwrite(storage: Storage, **upload: str) -> None:
    part = {"PartNumber": 1, "Body": content(PART_BYTES, "late"), "ChecksumAlgorithm": "SHA256"}
    storage.s3.upload_part(**upload, **part)


def _abort(storage: Storage, **upload: str) -> None:
    storage.s3.abort_multipart_upload(**upload)


@pytest.mark.parametrize(
    ("before", "act", "sent"),
    [
        ("CompleteMultipartUpload", _overwrite, ("UploadPart", 4)),
        ("UploadPart", _abort, ("CreateMultipartUpload", 2)),
    ],
    ids=["a part is overwritten", "it is aborted"],
)
def test_an_upload_succeeds_although_another_client_changes_it(
    storage: Storage, before: str, act: Callable[..., None], sent: tuple[str, int]
) -> None:
    file = storage.file("a", content(LARGE_BYTES))

    def meddle() -> None:
        (found,) = storage.s3.list_multipart_uploads(Bucket=storage.bucket)["Uploads"]
        act(storage, Bucket=storage.bucket, Key="in/a", UploadId=found["UploadId"])

    storage.proxy.plan(
        before, Meanwhile(meddle), when=lambda seen: seen.get("partNumber") in {None, "2"}
    )

    assert storage.upload(file, workers=1).outcomes == ["uploaded"]

    operation, count = sent
    assert storage.proxy.count(operation) == count
    storage.assert_stored([file])


@pytest.mark.parametrize("same", [True, False], ids=["the same", "another"])
@pytest.mark.parametrize("size", [SMALL_BYTES, LARGE_BYTES])
def test_an_object_that_appears_meanwhile_is_compared(
    storage: Storage, same: bool, size: int
) -> None:
    file = storage.file("a", content(size))
    theirs = content(size, 0 if same else "theirs")
    last = "PutObject" if size == SMALL_BYTES else "CompleteMultipartUpload"
    storage.proxy.plan(
        last,
        Meanwhile(lambda: storage.s3.put_object(Bucket=storage.bucket, Key="in/a", Body=theirs)),
    )

    uploaded = storage.upload(file)

    assert uploaded.summary.conflicts == int(not same)
    assert storage.proxy.stored == {}
    assert storage.objects() == {"in/a": theirs}
    assert (storage.row(file) is not None) == same
    assert storage.open_uploads() == []
    assert locks() == []


@pytest.mark.parametrize("size", [SMALL_BYTES, LARGE_BYTES])
def test_lost_replies_of_the_table_do_no_harm(
    storage: Storage, proxy: FaultProxy, size: int
) -> None:
    file = storage.file("a", content(size))
    proxy.plan("*", DropReply(), times=2, when=lambda body: body["TableName"] == "uploads")
    every_second = iter([False, True] * 50)
    proxy.plan(
        "*",
        DropReply(),
        times=50,
        when=lambda body: body["TableName"] == "uploads" and next(every_second),
    )

    assert storage.upload(file).outcomes == ["uploaded"]

    assert storage.proxy.stored == {"in/a": 1}
    storage.assert_stored([file])


def test_an_object_without_its_row_is_adopted_by_the_next_run(
    storage: Storage, proxy: FaultProxy, impatient: float
) -> None:
    file = storage.file("a", content(SMALL_BYTES))
    away = threading.Event()
    storage.proxy.plan("PutObject", Meanwhile(away.set))
    proxy.plan(
        "*",
        CloseBefore(),
        times=10**6,
        when=lambda body: body["TableName"] == "uploads" and away.is_set(),
    )

    failed = storage.upload(file)

    assert failed.outcomes == ["failed"]
    assert failed.result.reason.startswith("DynamoDB gave no answer to UpdateItem in time")
    assert locks() == []
    away.clear()

    assert storage.upload(file).outcomes == ["skipped"]

    assert storage.proxy.stored == {"in/a": 1}
    storage.assert_stored([file])
