"""`uploadfiles` in this process: what it stores and prints, and its exit code."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from dynamo._internal.bulk import pages
from dynamo._internal.client.sending import send
from tests.commands import run
from tests.faults.proxy import NOWHERE, through
from tests.items import insert
from tests.requests import Requests
from tests.uploads.folders import NAMES, write
from tests.uploads.s3_proxy import S3Answer, S3Proxy, through as s3_at
from tests.uploads.samples import objects_in
from uploads.models import DONE, UPLOADING, UploadItem
from web import s3 as storage


def rows() -> dict[str, str]:
    """The state of every row, by its key without the bucket."""
    names = ["key", "state"]
    return {
        row["key"]["S"].split("/", 3)[3]: row["state"]["S"]
        for page in pages(UploadItem.table(), names)
        for row in page
    }


def uploaded_as_json(*arguments: object) -> tuple[dict[str, Any], str, int]:
    """The JSON document (nothing else may be on stdout), stderr, the exit code."""
    out, err, code = run("uploadfiles", *map(str, arguments), "--json")
    assert out.count("\n") == 1
    document: dict[str, Any] = json.loads(out)
    assert document.pop("seconds") >= 0
    return document, err, code


def counts(**nonzero: int) -> dict[str, int]:
    return {"uploaded": 0, "skipped": 0, "conflicts": 0, "failed": 0, "bytes": 0} | nonzero


def test_a_folder_is_uploaded_and_the_summary_is_one_json_document(
    logs: str, bucket: str, s3: Any, tmp_path: Path
) -> None:
    write(tmp_path / "a.log", "12345")
    write(tmp_path / "sub" / "b.log", "678")
    write(tmp_path / "empty", "")

    answer = uploaded_as_json(tmp_path, logs)

    assert answer == (counts(uploaded=3, bytes=8), "", 0)
    stored = {"logs/a.log": b"12345", "logs/sub/b.log": b"678", "logs/empty": b""}
    assert objects_in(s3, bucket) == stored
    assert rows() == dict.fromkeys(stored, DONE)
    assert run("checkuploads", logs)[2] == 0


def test_files_of_every_name_arrive_with_their_bytes(
    engine: str, bucket: str, s3: Any, tmp_path: Path
) -> None:
    for name in NAMES:
        write(tmp_path / f"{name} dir" / name, name)

    document, err, code = uploaded_as_json(tmp_path, f"s3://{bucket}/日本 語%")

    assert (err, code, document["uploaded"]) == ("", 0, len(NAMES))
    assert objects_in(s3, bucket) == {
        f"日本 語%/{name} dir/{name}": name.encode() for name in NAMES
    }
    assert run("checkuploads", f"s3://{bucket}/日本 語%")[2] == 0


def test_every_failure_is_one_line_and_the_rest_is_uploaded(
    logs: str, bucket: str, s3: Any, tmp_path: Path
) -> None:
    write(tmp_path / "dir" / "fine")
    (tmp_path / "dir" / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "dir" / "two\nlines")
    os.close(os.open(os.fsencode(tmp_path) + b"/dir/caf\xe9", os.O_CREAT | os.O_WRONLY))
    gone = tmp_path / "gone"

    document, err, code = uploaded_as_json(gone, tmp_path / "dir", logs)

    assert (document, code) == (counts(uploaded=1, failed=4, bytes=1), 1)
    assert sorted(err.splitlines()) == [
        "CommandError: 4 failures.",
        f"failed: {tmp_path}/dir/broken: It is a broken symbolic link.",
        f"failed: {tmp_path}/dir/caf\\udce9: Not a valid S3 key: it is not valid UTF-8.",
        f"failed: {tmp_path}/dir/two\\nlines: It is not a regular file.",
        f"failed: {gone}: No such file or directory.",
    ]
    assert objects_in(s3, bucket) == {"logs/fine": b"x"}


@pytest.mark.parametrize("flags", [["--verbose"], ["-v", "2"], ["--verbosity=3"]])
def test_verbose_prints_one_line_per_file(logs: str, tmp_path: Path, flags: list[str]) -> None:
    write(tmp_path / "done")
    run("uploadfiles", str(tmp_path), logs)
    write(tmp_path / "two\nlines")

    out, err, code = run("uploadfiles", *flags, str(tmp_path), logs)

    *lines, _summary = out.splitlines()
    # With Django's own option, a line also has the cost.
    assert re.fullmatch(r"uploadfiles: .*\n" if flags != ["--verbose"] else "", err)
    assert code == 0
    assert sorted(lines) == [
        f"skipped: {tmp_path}/done (it was stored before)",
        f"uploaded: {tmp_path}/two\\nlines",
    ]


def test_verbose_json_keeps_its_lines_from_stdout(logs: str, tmp_path: Path) -> None:
    write(tmp_path / "a")

    document, err, code = uploaded_as_json(tmp_path, logs, "--verbose")

    assert (document, code) == (counts(uploaded=1, bytes=1), 0)
    assert err == f"uploaded: {tmp_path}/a\n"


def test_include_and_exclude_choose_files(logs: str, bucket: str, s3: Any, tmp_path: Path) -> None:
    for name in ("a.log", "b.txt", "c.gz", "old/d.log", "new/e.log"):
        write(tmp_path / name)
    choice = ["--include", "*.log", "--include=*.gz", "--exclude", "old/*", "--exclude=none"]

    document, _err, _code = uploaded_as_json(*choice, tmp_path, logs)

    assert document["uploaded"] == 3
    assert objects_in(s3, bucket).keys() == {"logs/a.log", "logs/c.gz", "logs/new/e.log"}


@pytest.fixture
def one_of_each(logs: str, bucket: str, s3: Any, tmp_path: Path) -> Path:
    """A folder with something new, done, adoptable, conflicting (twice), interrupted, unusable."""
    folder = tmp_path / "folder"
    write(folder / "done", "done")
    changed = write(folder / "changed", "before")
    run("uploadfiles", str(folder), logs)
    changed.write_text("after!")
    for name in ("new", "adoptable", "foreign", "begun"):
        write(folder / name, name)
    s3.put_object(Bucket=bucket, Key="logs/adoptable", Body=b"adoptable")
    s3.put_object(Bucket=bucket, Key="logs/foreign", Body=b"another")
    insert(UploadItem(f"s3://{bucket}/logs/begun", state=UPLOADING, size=5))
    os.mkfifo(folder / "fifo")
    return folder


def test_a_dry_run_prints_what_would_be_done_and_writes_nothing(
    logs: str, one_of_each: Path, bucket: str, s3: Any, requests_sent: Requests
) -> None:
    before = objects_in(s3, bucket), rows()
    requests_sent.clear()

    out, err, code = run("uploadfiles", "--dry-run", str(one_of_each), logs)

    *lines, summary = out.splitlines()
    assert code == 1
    assert sorted(lines) == [
        f"would be skipped: {one_of_each}/adoptable (the bucket had it already)",
        f"would be skipped: {one_of_each}/done (it was stored before)",
        f"would be uploaded: {one_of_each}/begun",
        f"would be uploaded: {one_of_each}/new",
    ]
    assert sorted(err.splitlines()) == [
        "CommandError: 2 conflicts and 1 failure.",
        f"conflict: {one_of_each}/changed: another file was stored under this key.",
        f"conflict: {one_of_each}/foreign: another object has this key.",
        f"failed: {one_of_each}/fifo: It is not a regular file.",
    ]
    expected = r"Would be: uploaded 2, skipped 2, conflicts 2, failed 1; 8 bytes in \d+\.\d s\."
    assert re.fullmatch(expected, summary)
    assert set(requests_sent.operations) == {"BatchGetItem"}
    assert (objects_in(s3, bucket), rows()) == before
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_a_dry_run_predicts_what_the_run_does(logs: str, one_of_each: Path) -> None:
    foretold, dry_err, dry_code = uploaded_as_json("--dry-run", one_of_each, logs)

    done, err, code = uploaded_as_json(one_of_each, logs)

    assert (done, sorted(err.splitlines()), code) == (
        foretold,
        sorted(dry_err.splitlines()),
        dry_code,
    )


def test_a_dry_run_predicts_the_outcome_of_two_files_for_one_key(logs: str, tmp_path: Path) -> None:
    files = [
        write(tmp_path / folder / name, text)
        for folder, name, text in [
            ("1", "a", "1"),
            ("2", "a", "2"),
            ("1", "b", "x"),
            ("2", "b", "x"),
        ]
    ]

    foretold, dry_err, dry_code = uploaded_as_json("--dry-run", *files, logs)
    done, err, code = uploaded_as_json("--workers", "1", *files, logs)

    assert foretold == done == counts(uploaded=2, skipped=1, conflicts=1, bytes=2)
    # Which of the two comes first is drawn by lot.
    conflict = f"conflict: {tmp_path}/[12]/a: another file was stored under this key.\n"
    assert all(re.match(conflict, told) for told in (dry_err, err))
    assert dry_code == code == 1


def test_a_dry_run_reports_a_damaged_row_and_continues(
    logs: str, bucket: str, tmp_path: Path
) -> None:
    for name in ("bad", "fine"):
        write(tmp_path / name)
    bad = {"key": {"S": f"s3://{bucket}/logs/bad"}, "state": {"S": "done"}, "size": {"S": "a"}}
    send("PutItem", {"TableName": UploadItem.table(), "Item": bad})

    document, err, code = uploaded_as_json("--dry-run", tmp_path, logs)

    assert (document, code) == (counts(uploaded=1, failed=1, bytes=1), 1)
    assert f"failed: {tmp_path}/bad: The item 's3://{bucket}/logs/bad' of uploads is damaged" in err


def test_a_dry_run_reads_many_rows_in_few_requests(
    logs: str, tmp_path: Path, requests_sent: Requests
) -> None:
    for number in range(101):
        write(tmp_path / str(number))

    document, err, code = uploaded_as_json("--dry-run", tmp_path, logs)

    assert (document, err, code) == (counts(uploaded=101, bytes=101), "", 0)
    assert requests_sent.operations == ["BatchGetItem"] * 2


@pytest.mark.parametrize(
    "command",
    [
        *("uploadfiles", "uploadfiles s3://bucket/logs", "uploadfiles folder"),
        *("uploadfiles folder bucket/logs", "uploadfiles s3://bucket/logs folder"),
        "uploadfiles folder s3://NOT_A_BUCKET/logs",
        *(f"uploadfiles --workers {n} folder s3://bucket/logs" for n in ("0", "33", "many")),
        "uploadfiles --no-such-flag folder s3://bucket/logs",
        *("checkuploads", "checkuploads bucket/logs", "checkuploads s3://"),
        *("checkuploads s3://B/x", "checkuploads s3://one/a s3://two/b"),
    ],
)
def test_wrong_usage_exits_2(command: str) -> None:
    out, err, code = run(*command.split())

    assert (out, code) == ("", 2)
    assert "usage" in err


def assert_one_line(answer: tuple[str, str, int], *, about: str) -> None:
    out, err, code = answer
    assert (out, code) == ("", 1)
    assert err.count("\n") == 1
    assert about in err


@pytest.mark.parametrize("flags", [[], ["--dry-run"], ["--json"]])
def test_a_missing_bucket_is_one_line_and_exit_code_1(
    engine: str, s3_url: str, tmp_path: Path, flags: list[str]
) -> None:
    for number in range(3):
        write(tmp_path / str(number))

    answer = run("uploadfiles", *flags, str(tmp_path), "s3://no-such-bucket/logs")

    assert_one_line(answer, about="NoSuchBucket")
    assert rows() == {}


def test_if_s3_lists_the_bucket_each_refused_file_is_reported(
    logs: str, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / name)
    s3_proxy.plan("PutObject", S3Answer(403, "AccessDenied"), times=3)

    out, err, code = run("uploadfiles", str(tmp_path), logs, "--json", "--workers", "1")

    assert (json.loads(out)["failed"], code) == (3, 1)
    assert err.count("AccessDenied") == 3
    assert s3_proxy.count("ListObjectsV2") == 1


def test_if_s3_refuses_everything_it_is_one_line_and_exit_code_1(
    logs: str, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    for number in range(20):
        write(tmp_path / str(number))
    s3_proxy.plan("*", S3Answer(403, "AccessDenied"), times=1000)

    answer = run("uploadfiles", str(tmp_path), logs)

    assert_one_line(answer, about="AccessDenied")
    assert s3_proxy.count() < 40
    assert rows() == {}


@pytest.mark.parametrize(
    ("url", "has_credentials", "about"),
    [
        (NOWHERE, True, NOWHERE),
        # Signing needs them before anything is sent to this host, which does not exist.
        ("http://s3.invalid", False, "Unable to locate credentials"),
    ],
)
def test_an_unreachable_s3_and_missing_credentials_are_one_line_and_exit_code_1(
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    has_credentials: bool,
    about: str,
) -> None:
    write(tmp_path / "a")
    monkeypatch.setattr(storage, "ATTEMPTS", 1)
    if not has_credentials:
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    with s3_at(url):
        answer = run("uploadfiles", str(tmp_path), "s3://bucket/logs")

    assert_one_line(answer, about=about)


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_an_unreachable_dynamodb_is_one_line_and_exit_code_1(
    logs: str, tmp_path: Path, impatient: float, flags: list[str]
) -> None:
    write(tmp_path / "a")

    with through(NOWHERE):
        answer = run("uploadfiles", *flags, str(tmp_path), logs)

    assert_one_line(answer, about="DynamoDB gave no answer")
