"""`checkuploads`: the table against the bucket."""

import base64
import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynamo.tables import findings
from tests.commands import run
from tests.faults.kinds import DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.items import insert
from tests.locks.items import abandoned, renewed_at_each_look, taken
from tests.requests import Requests
from tests.uploads.s3_proxy import S3Answer, S3Proxy
from tests.uploads.samples import PART_BYTES, file_of, put_in_parts
from uploads import claims, s3 as storage
from uploads.check import forget
from uploads.contents import composite_of
from uploads.models import DONE, UPLOADING, UploadItem
from uploads.sources import Destination

SOUND: dict[str, list[str]] = {"missing": [], "foreign": [], "different": [], "unfinished": []}


def sha256(data: bytes) -> str:
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


#: The row of an object that is stored late.
CONTENTS: dict[str, Any] = {"size": 8, "etag": "x", "sha256": sha256(b"contents")}


@pytest.fixture
def stored(engine: str, bucket: str, s3: Any) -> Any:
    """Store an object and its row, as an upload leaves them."""

    def store(key: str, data: bytes = b"contents", **row: Any) -> UploadItem:
        answer = s3.put_object(Bucket=bucket, Key=key, Body=data, ChecksumSHA256=sha256(data))
        values = {"etag": answer["ETag"].strip('"'), "size": len(data), "sha256": sha256(data)}
        return add_row(bucket, key, **values | row)

    return store


def add_row(bucket: str, key: str, state: str = DONE, **values: Any) -> UploadItem:
    row = UploadItem(f"s3://{bucket}/{key}", state=state, **values)
    insert(row)
    return row


def once(act: Callable[[], object]) -> Callable[[], None]:
    """Do it at the first call, which later ones wait for."""
    acting = threading.Lock()
    done = threading.Event()

    def act_once() -> None:
        with acting:
            if not done.is_set():
                act()
            done.set()

    return act_once


def report(bucket: str, prefix: str = "logs") -> tuple[dict[str, Any], int]:
    """What is printed as JSON, and the exit code."""
    out, err, code = run("checkuploads", f"s3://{bucket}/{prefix}", "--json")
    assert err.count("\n") == (1 if code else 0)
    document: dict[str, Any] = json.loads(out)
    return document, code


def test_rows_and_objects_below_the_prefix_agree(
    bucket: str, stored: Any, s3: Any, requests_sent: Requests
) -> None:
    assert report(bucket) == ({"rows": 0, "objects": 0, **SOUND}, 0)
    for key in ("logs/a", "logs/deep/down/b", "logs/empty"):
        stored(key, b"" if key == "logs/empty" else b"contents")
    stored("logs/c", etag="of-another-encryption")
    stored("top")
    add_row(f"{bucket}2", "missing", size=1, etag="x", sha256="x")
    requests_sent.clear()
    assert report(bucket, "") == ({"rows": 5, "objects": 5, **SOUND}, 0)
    # Only the row with another ETag is read again.
    assert requests_sent.operations.count("GetItem") == 1

    for key in ("logs2/missing", "logs"):
        add_row(bucket, key, size=1, etag="x", sha256="x")
    for key in ("logs2/foreign", "logs-foreign"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    for prefix in ("logs", "logs/"):
        assert report(bucket, prefix) == ({"rows": 4, "objects": 4, **SOUND}, 0)


def test_each_difference_is_reported_by_its_kind(bucket: str, stored: Any, s3: Any) -> None:
    for key in ("fine", "lost", "replaced", "longer", "emptied"):
        stored(f"logs/{key}")
    s3.delete_object(Bucket=bucket, Key="logs/lost")
    for key, data in (("replaced", b"CONTENTS"), ("longer", b"other contents"), ("emptied", b"")):
        s3.put_object(Bucket=bucket, Key=f"logs/{key}", Body=data)
    for key in ("foreign", "arrived"):
        s3.put_object(Bucket=bucket, Key=f"logs/{key}", Body=b"x")
    for key in ("begun", "arrived"):
        add_row(bucket, f"logs/{key}", UPLOADING, size=1)
    limits = {"event_name": "provide-client-params.s3.ListObjectsV2", "unique_id": "limit"}
    events = storage.client().meta.events
    events.register(**limits, handler=lambda params, **_event: params | {"MaxKeys": 2})

    found = report(bucket)

    events.unregister(**limits)
    kinds = {
        "missing": ["logs/lost"],
        "foreign": ["logs/foreign"],
        "different": ["logs/emptied", "logs/longer", "logs/replaced"],
        "unfinished": ["logs/arrived", "logs/begun"],
    }
    assert found == ({"rows": 7, "objects": 6, **kinds}, 1)


def test_an_object_copied_over_is_sound_where_its_bytes_are_the_same(
    bucket: str, stored: Any, s3: Any, s3_proxy: S3Proxy, small_parts: None
) -> None:
    for key, data in (("same", b"contents"), ("other", b"CONTENTS")):
        stored(f"logs/small/{key}", b"contents")
        put_in_parts(s3, bucket, f"logs/small/{key}", [data])
    stored("logs/summed", b"contents")
    s3.put_object(Bucket=bucket, Key="logs/summed", Body=b"CONTENTS", ChecksumAlgorithm="SHA256")
    parts = [bytes(PART_BYTES), b"the rest"]
    etag = put_in_parts(s3, bucket, "logs/large/in parts", parts)
    whole = b"".join(parts)
    for key, data in (("same", whole), ("other", whole[:-1] + b"T")):
        s3.put_object(Bucket=bucket, Key=f"logs/large/{key}", Body=data)
    checksum = composite_of([sha256(part) for part in parts])
    for key in ("in parts", "same", "other"):
        add_row(bucket, f"logs/large/{key}", etag=etag, size=len(whole), sha256=checksum)

    found = {**SOUND, "different": ["logs/large/other", "logs/small/other", "logs/summed"]}
    assert report(bucket) == ({"rows": 6, "objects": 6, **found}, 1)
    # Those without a checksum are downloaded: two whole ones, and two in two parts each.
    assert s3_proxy.count("GetObject") == 2 + 2 * 2


def test_an_upload_during_the_check_is_not_reported(
    proxy: FaultProxy, bucket: str, stored: Any
) -> None:
    # Before each segment is read, whichever is the first.
    proxy.plan("Scan", Meanwhile(once(lambda: stored("logs/late"))), times=100)

    # Its object was not listed any more, its row was read.
    assert report(bucket) == ({"rows": 1, "objects": 0, **SOUND}, 0)
    assert proxy.count("GetItem") == 1


def test_a_difference_that_is_fixed_is_not_reported(
    proxy: FaultProxy, bucket: str, stored: Any, s3: Any
) -> None:
    stored("logs/a")
    s3.delete_object(Bucket=bucket, Key="logs/a")
    s3.put_object(Bucket=bucket, Key="logs/b", Body=b"contents")

    def put_both() -> None:
        s3.put_object(Bucket=bucket, Key="logs/a", Body=b"contents")
        add_row(bucket, "logs/b", **CONTENTS)

    # Before each of the two is looked at, whichever is the first.
    proxy.plan("GetItem", Meanwhile(once(put_both)), times=100)

    assert report(bucket) == ({"rows": 1, "objects": 1, **SOUND}, 0)


def test_an_object_whose_row_comes_late_is_not_foreign(
    proxy: FaultProxy, bucket: str, s3: Any
) -> None:
    s3.put_object(Bucket=bucket, Key="logs/a", Body=b"contents")
    # The first look at the row finds none, the second, after the object's, does.
    proxy.plan("GetItem", Meanwhile(lambda: None))
    proxy.plan("GetItem", Meanwhile(lambda: add_row(bucket, "logs/a", **CONTENTS)))

    assert report(bucket) == ({"rows": 0, "objects": 1, **SOUND}, 0)


def test_unfinished_rows_without_a_process_are_deleted(bucket: str, stored: Any, s3: Any) -> None:
    add_row(bucket, "logs/free", UPLOADING, size=1)
    dead = abandoned("uploads#dead", lease_seconds=0.3)
    add_row(bucket, "logs/dead", UPLOADING, size=1, lease=dead.name, fence=dead.fence)
    add_row(bucket, "logs/gone", UPLOADING, size=1, lease="uploads#gone", fence=5)
    s3.put_object(Bucket=bucket, Key="logs/there", Body=b"x")
    add_row(bucket, "logs/there", UPLOADING, size=1)
    for key in ("logs/free", "logs/dead", "logs/other"):
        s3.create_multipart_upload(Bucket=bucket, Key=key)
    alive = abandoned("uploads#alive", lease_seconds=0.6)
    add_row(bucket, "logs/busy", UPLOADING, size=1, lease=alive.name, fence=alive.fence)
    with renewed_at_each_look(alive):
        out, _err, code = run(
            "checkuploads", f"s3://{bucket}/logs", "--forget-unfinished", "--json"
        )

    found = {**SOUND, "unfinished": ["logs/busy", "logs/there"]}
    forgotten = ["logs/dead", "logs/free", "logs/gone"]
    told = json.loads(out)
    assert sorted(told.pop("forgotten")) == forgotten
    assert (told, code) == ({"rows": 2, "objects": 1, **found}, 1)
    left = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [item["Key"] for item in left] == ["logs/other"]
    assert report(bucket) == ({"rows": 2, "objects": 1, **found}, 1)


def test_a_row_that_another_process_takes_over_meanwhile_is_kept_and_the_next_is_deleted(
    engine: str, bucket: str, s3: Any, s3_proxy: S3Proxy
) -> None:
    for key in ("logs/a", "logs/b"):
        add_row(bucket, key, UPLOADING, size=1)
        s3.create_multipart_upload(Bucket=bucket, Key=key)
    lease = taken("uploads#other")

    def take_over() -> None:
        assert isinstance(claims.take(f"s3://{bucket}/logs/a", 1, lease), claims.Claim)

    s3_proxy.plan("ListMultipartUploads", Meanwhile(take_over))

    assert list(forget(Destination(bucket, "logs"), ["logs/a", "logs/b"])) == ["logs/b"]

    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    kept = claims.read(f"s3://{bucket}/logs/a")
    assert kept is not None
    assert kept["lease"] == {"S": lease.name}


def test_files_of_lost_objects_are_uploaded_again(
    bucket: str, stored: Any, s3: Any, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "lost", b"contents")
    for name in ("lost", "kept"):
        stored(f"logs/{name}")
    s3.delete_object(Bucket=bucket, Key="logs/lost")
    add_row(bucket, "logs/begun", UPLOADING)

    out, _err, code = run("checkuploads", f"s3://{bucket}/logs", "--forget-missing", "--json")

    found = {**SOUND, "unfinished": ["logs/begun"]}
    assert json.loads(out) == {"rows": 2, "objects": 1, **found, "forgotten": ["logs/lost"]}
    assert code == 1
    out, _err, code = run("uploadfiles", file.path, f"s3://{bucket}/logs", "--json")
    assert (json.loads(out)["uploaded"], code) == (1, 0)
    assert report(bucket) == ({"rows": 3, "objects": 2, **found}, 1)


def test_an_upload_of_another_program_continues_while_the_row_of_a_lost_object_is_deleted(
    bucket: str, s3: Any
) -> None:
    add_row(bucket, "logs/lost")
    s3.create_multipart_upload(Bucket=bucket, Key="logs/lost")

    assert list(forget(Destination(bucket, "logs"), ["logs/lost"])) == ["logs/lost"]

    left = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [item["Key"] for item in left] == ["logs/lost"]


@pytest.mark.parametrize("data", [b"contents", b"other"], ids=["the same", "another"])
def test_a_row_that_changes_while_its_object_is_looked_for_is_not_deleted(
    bucket: str, stored: Any, s3_proxy: S3Proxy, proxy: FaultProxy, data: bytes
) -> None:
    row = stored("logs/a", updated_at="2026-11-21T09:00:00.000+00:00")
    s3_proxy.plan("HeadObject", S3Answer(404, "NotFound"))

    def another_stores_it() -> None:
        claims.delete_unchanged(row)
        stored("logs/a", data, updated_at="2026-11-21T09:00:01.000+00:00")

    proxy.plan("DeleteItem", Meanwhile(another_stores_it))

    assert list(forget(Destination(bucket, "logs"), ["logs/a"])) == []
    assert report(bucket) == ({"rows": 1, "objects": 1, **SOUND}, 0)


def test_a_done_row_without_checksum_can_be_deleted(bucket: str, proxy: FaultProxy) -> None:
    add_row(bucket, "logs/a")
    proxy.plan("DeleteItem", DropReply())

    assert list(forget(Destination(bucket, "logs"), ["logs/a"])) == ["logs/a"]
    assert report(bucket) == ({"rows": 0, "objects": 0, **SOUND}, 0)


def test_the_text_output_has_one_line_per_finding_of_which_the_rest_is_counted(
    bucket: str, stored: Any, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "LISTED", 2)
    stored("logs/a")
    add_row(bucket, "logs/begun", UPLOADING, size=1)
    for name in ("two\nlines\x1b", "z1", "z2", "z3"):
        s3.put_object(Bucket=bucket, Key=f"logs/{name}", Body=b"x")
    where, counted = f"s3://{bucket}/logs", "missing 0, foreign 4, different 0, unfinished 0"

    out, err, code = run("checkuploads", where, "--forget-unfinished")

    assert (out.splitlines(), code) == (
        [
            f"forgotten   {where}/begun",
            f"foreign     {where}/two\\nlines\\x1b",
            f"foreign     {where}/z1",
            "foreign     and 2 more, not confirmed",
            f"Rows 1, objects 5: {counted}.",
        ],
        1,
    )
    assert err == f"CommandError: Table and bucket differ: {counted}.\n"
    assert report(bucket)[0]["more"] == {"foreign": 2}
