"""Each file is stored in S3 once, whole, or is reported with a reason."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from locks import LeaseLost
from tests.faults.kinds import Meanwhile
from tests.requests import Requests
from tests.uploads.samples import (
    LARGE_BYTES,
    PART_BYTES,
    Storage,
    Uploaded,
    all_rows,
    content,
    file_of,
    locks,
    put_in_parts,
)
from uploads.s3 import AT_ONCE_BYTES
from uploads.sources import Result, Source

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.fault_of("moto", "counts half a unit for an update")
def test_a_new_small_file_costs_two_units_and_a_put(
    storage: Storage, requests_sent: Requests
) -> None:
    file = storage.file("a.log", content(10_000))

    # Of a shorter lease a slow machine might see a renewal.
    uploaded = storage.upload(file, lease_seconds=600)

    of_the_run = ["UpdateItem", "DeleteItem"]  # its lock is taken and removed
    assert sorted(requests_sent.operations) == sorted([*of_the_run, "UpdateItem", "UpdateItem"])
    assert requests_sent.units == 2 + 2
    assert [seen.operation for seen in storage.proxy.seen] == ["PutObject"]
    assert uploaded.outcomes == ["uploaded"]
    assert uploaded.bytes == uploaded.summary.bytes == 10_000
    storage.assert_stored([file])


def test_s3_is_asked_first_only_for_a_body_that_is_not_small(storage: Storage) -> None:
    sizes = {"empty": 0, "small": AT_ONCE_BYTES, "more": AT_ONCE_BYTES + 1}
    files = [storage.file(name, content(size)) for name, size in sizes.items()]

    storage.upload(*files)

    assert storage.proxy.asked == ["in/more"]
    storage.assert_stored(files)


@pytest.mark.parametrize(
    ("size", "parts"), [(0, 0), (1, 0), (PART_BYTES, 0), (PART_BYTES + 1, 2), (LARGE_BYTES, 3)]
)
def test_a_file_of_any_size_is_stored_whole_and_only_once(
    storage: Storage, size: int, parts: int
) -> None:
    file = storage.file("a", content(size))
    other = file_of(storage.folder / "other", "a", content(size or 1, "other"))

    uploaded = storage.upload(file)

    assert uploaded.bytes == uploaded.summary.bytes == size
    assert storage.proxy.count("UploadPart") == parts
    head = storage.s3.head_object(Bucket=storage.bucket, Key="in/a", ChecksumMode="ENABLED")
    row = storage.row(file)
    assert row is not None
    assert row == {
        "key": f"s3://{storage.bucket}/in/a",
        "state": "done",
        "size": f"{size}",
        "sha256": head["ChecksumSHA256"],
        "etag": head["ETag"].strip('"'),
        "updatedAt": row["updatedAt"],
    }
    assert row["sha256"].endswith(f"-{parts}") == (parts > 0)
    storage.proxy.forget()

    again = storage.upload(file).result
    conflict = storage.upload(other).result

    assert (again.outcome, again.reason) == ("skipped", "it was stored before")
    assert (conflict.outcome, conflict.reason) == (
        "conflict",
        "another file was stored under this key",
    )
    assert storage.proxy.count() == 0
    assert storage.row(file) == row
    storage.assert_stored([file])


@pytest.mark.parametrize("size", [800_000, PART_BYTES + 1])
@pytest.mark.parametrize(
    ("in_parts", "algorithm"),
    [(False, "SHA256"), (False, "CRC32"), (True, "SHA256"), (True, None)],
    ids=["SHA-256", "CRC-32", "SHA-256 over parts", "none"],
)
def test_an_equal_object_without_a_row_is_adopted_and_a_different_one_is_a_conflict(
    storage: Storage, size: int, in_parts: bool, algorithm: str | None
) -> None:
    equal = file_of(storage.folder / "equal", "a", data := content(size))
    others = [
        file_of(storage.folder / "other", "a", content(size, "other")),
        file_of(storage.folder / "shorter", "a", data[:-1]),
    ]
    options = {"ChecksumAlgorithm": algorithm} if algorithm else {}
    if in_parts:
        # Not cut as we cut files.
        parts = [data[:600_000], data[600_000:]]
        put_in_parts(storage.s3, storage.bucket, "in/a", parts, **options)
    else:
        storage.s3.put_object(Bucket=storage.bucket, Key="in/a", Body=data, **options)

    for other in others:
        refused = storage.upload(other).result

        assert (refused.outcome, refused.reason) == ("conflict", "another object has this key")
        assert storage.row(other) is None

    adopted = storage.upload(equal).result

    assert (adopted.outcome, adopted.reason) == ("skipped", "the bucket had it already")
    assert storage.proxy.count("UploadPart") == 0
    # An object of another size is not downloaded.
    assert storage.proxy.count("GetObject") == (0 if options else 2)
    assert storage.proxy.stored == {}
    storage.assert_stored([equal])


def test_a_file_that_cannot_be_stored_is_reported_and_the_rest_is_stored(storage: Storage) -> None:
    fine = [storage.file(name, b"fine") for name in ("first", "last")]
    os.mkfifo(storage.folder / "pipe")
    bad = [
        Source(str(storage.folder / "gone"), "in/gone", 5),
        Source(str(storage.folder / "pipe"), "in/pipe", 0),
        Source(str(storage.folder), "in/folder", 0),
        Result("loop", "", "failed", 0, "Too many levels of symbolic links"),
    ]

    uploaded = storage.upload(fine[0], *bad, fine[1])

    reasons = {Path(result.name).name: result.reason for result in uploaded.results}
    assert reasons == {
        "first": "",
        "last": "",
        "gone": "The file cannot be read: No such file or directory",
        "pipe": "The file cannot be read: it is not a regular file",
        storage.folder.name: "The file cannot be read: it is not a regular file",
        "loop": "Too many levels of symbolic links",
    }
    assert uploaded.summary.failed == 4
    assert uploaded.summary.uploaded == 2
    storage.assert_stored(fine)


def test_sources_are_drawn_as_workers_get_free(storage: Storage) -> None:
    drawn = 0

    def endless() -> Iterator[Source]:
        nonlocal drawn
        while True:
            drawn += 1
            yield storage.file(str(drawn), b"x")

    stop = threading.Event()
    storage.proxy.plan("PutObject", Meanwhile(stop.set), when=lambda seen: seen["key"] == "in/20")

    uploaded = Uploaded(endless(), storage.bucket, workers=4, stop=stop)

    assert drawn < 60
    assert 15 < uploaded.summary.uploaded <= drawn
    assert {row["state"] for row in all_rows()} == {"done"}
    assert locks() == []


def test_an_error_of_the_caller_ends_the_threads_and_frees_the_claims(storage: Storage) -> None:
    def failing() -> Iterator[Source]:
        yield storage.file("a", b"x")
        yield storage.file("b", content(LARGE_BYTES))
        raise LeaseLost("of", 1, "a test")

    with pytest.raises(LeaseLost):
        Uploaded(failing(), storage.bucket)

    assert [thread.name for thread in threading.enumerate() if "uploads" in thread.name] == []
    assert {row.get("lease") for row in all_rows()} <= {None}
    assert locks() == []
