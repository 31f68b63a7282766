"""`uploadfiles`: what it stores and prints, its exit code, and what ends it."""

import json
import os
import re
import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from dynamo.client.bulk import pages
from dynamo.runtime import deadline
from tests.commands import run, run_for_real, run_on_a_terminal
from tests.conftest import PATIENCE_SECONDS
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import NOWHERE, through
from tests.forked import Forked
from tests.items import insert, put_item
from tests.programs import start
from tests.requests import Requests
from tests.uploads.folders import NAMES, write
from tests.uploads.s3_proxy import S3Answer, S3Proxy, through as s3_at
from tests.uploads.samples import LARGE_BYTES, all_rows, locks, objects_in
from tests.waiting import catches, wait_until
from uploads import s3 as storage
from uploads.models import DONE, UPLOADING, UploadItem


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


def test_the_chosen_files_are_uploaded(logs: str, bucket: str, s3: Any, tmp_path: Path) -> None:
    for name in ("a.log", "b.txt", "old/d.log"):
        write(tmp_path / name)
    write(tmp_path / "sub" / "c.gz", "678")
    write(tmp_path / "empty.log", "")
    choice = ["--include", "*.log", "--include=*.gz", "--exclude", "old/*", "--exclude=none"]

    answer = uploaded_as_json(*choice, tmp_path, logs)

    assert answer == (counts(uploaded=3, bytes=4), "", 0)
    stored = {"logs/a.log": b"x", "logs/sub/c.gz": b"678", "logs/empty.log": b""}
    assert objects_in(s3, bucket) == stored
    assert rows() == dict.fromkeys(stored, DONE)
    assert run("checkuploads", logs)[2] == 0


def test_files_of_every_name_arrive(engine: str, bucket: str, s3: Any, tmp_path: Path) -> None:
    for name in NAMES:
        write(tmp_path / f"{name} dir" / name, name)

    document, err, code = uploaded_as_json(tmp_path, f"s3://{bucket}/日本 語%")

    assert (err, code, document["uploaded"]) == ("", 0, len(NAMES))
    assert objects_in(s3, bucket) == {
        f"日本 語%/{name} dir/{name}": name.encode() for name in NAMES
    }
    assert run("checkuploads", f"s3://{bucket}/日本 語%")[2] == 0


def test_links_that_leave_the_folder_are_skipped_and_followed_on_request(
    logs: str, bucket: str, s3: Any, tmp_path: Path
) -> None:
    secret = write(tmp_path / "secret")
    folder = write(tmp_path / "logs" / "a").parent
    (folder / "link").symlink_to(secret)
    named = f"{folder}/link"
    reason = "It is a symbolic link that leaves the folder; --follow-links follows it"

    for flags, count in ((["--dry-run"], "uploaded"), ([], "uploaded"), ([], "skipped")):
        document, err, code = uploaded_as_json(*flags, folder, logs)
        size = {"bytes": 1} if count == "uploaded" else {}
        expected = counts(**size)
        expected["skipped"] += 1
        expected[count] += 1
        assert (document, err, code) == (expected, f"skipped: {named}: {reason}.\n", 0)
    out, _err, _code = run("uploadfiles", str(folder), logs)
    assert out.startswith("Uploaded 0, skipped 2, conflicts 0, ")
    assert uploaded_as_json(named, logs)[1:] == (
        f"failed: {named}: {reason}.\nCommandError: 1 failure.\n",
        1,
    )
    assert objects_in(s3, bucket).keys() == {"logs/a"}

    document, err, code = uploaded_as_json("--follow-links", folder, logs)
    assert (document, err, code) == (counts(uploaded=1, skipped=1, bytes=1), "", 0)


def test_objects_have_the_type_of_their_name_or_the_one_that_was_asked_for(
    logs: str, bucket: str, s3: Any, tmp_path: Path, small_parts: None
) -> None:
    types = {
        "page.html": "text/html",
        "log.txt.gz": "application/gzip",
        "data:text/css,x.pdf": "application/pdf",
        "large.txt": "text/plain",
    }
    for name in types:
        write(tmp_path / name, "x" * (LARGE_BYTES if name == "large.txt" else 1))

    def stored(prefix: str) -> dict[str, str]:
        keys = {name: f"{prefix}/{name}" for name in types}
        return {
            name: s3.head_object(Bucket=bucket, Key=key)["ContentType"]
            for name, key in keys.items()
        }

    run("uploadfiles", str(tmp_path), logs)
    given = "text/plain; charset=utf-8"
    run("uploadfiles", "--content-type", given, str(tmp_path), f"s3://{bucket}/given")

    assert stored("logs") == types
    assert stored("given") == dict.fromkeys(types, given)


@pytest.mark.parametrize("flags", [["--verbose"], ["-v", "2"], ["--verbose", "--json"]], ids=str)
def test_verbose_prints_one_line_per_file(logs: str, tmp_path: Path, flags: list[str]) -> None:
    write(tmp_path / "done")
    run("uploadfiles", str(tmp_path), logs)
    write(tmp_path / "two\nlines")

    out, err, code = run("uploadfiles", *flags, str(tmp_path), logs)

    if "--json" in flags:
        out, err = f"{err}{out}", ""
    *lines, _summary = out.splitlines()
    # With Django's own option, a line also has the cost.
    assert re.fullmatch(r"uploadfiles: .*\n" if "-v" in flags else "", err)
    assert code == 0
    assert sorted(lines) == [
        f"skipped: {tmp_path}/done (it was stored before)",
        f"uploaded: {tmp_path}/two\\nlines",
    ]


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
    s3.put_object(Bucket=bucket, Key="logs/foreign", Body=b"another file")
    insert(UploadItem(f"s3://{bucket}/logs/begun", state=UPLOADING, size=5))
    os.mkfifo(folder / "fifo")
    return folder


def test_a_dry_run_prints_what_the_run_does_then_and_writes_nothing(
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
    assert set(requests_sent.operations) == {"GetItem"}
    assert (objects_in(s3, bucket), rows()) == before
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)

    done, told, code = uploaded_as_json(one_of_each, logs)
    assert (done, code) == (counts(uploaded=2, skipped=2, conflicts=2, failed=1, bytes=8), 1)
    assert sorted(told.splitlines()) == sorted(err.splitlines())


def test_a_dry_run_predicts_the_outcome_of_two_files_for_one_key(logs: str, tmp_path: Path) -> None:
    texts = {"1/a": "1", "2/a": "2", "1/b": "x", "2/b": "x"}
    files = [write(tmp_path / name, text) for name, text in texts.items()]

    predicted, dry_err, dry_code = uploaded_as_json("--dry-run", *files, logs)
    done, err, code = uploaded_as_json(*files, logs)

    assert predicted == done == counts(uploaded=2, skipped=1, conflicts=1, bytes=2)
    # Which of the two comes first is drawn by lot.
    conflict = f"conflict: {tmp_path}/[12]/a: another file was stored under this key.\n"
    assert all(re.match(conflict, told) for told in (dry_err, err))
    assert dry_code == code == 1


def test_a_dry_run_reports_a_row_that_is_damaged(logs: str, bucket: str, tmp_path: Path) -> None:
    for name in ("bad", "good"):
        write(tmp_path / name)
    bad = {"key": {"S": f"s3://{bucket}/logs/bad"}, "state": {"S": "done"}, "size": {"S": "a"}}
    put_item(UploadItem.table(), **bad)

    document, err, code = uploaded_as_json("--dry-run", tmp_path, logs)

    assert (document, code) == (counts(uploaded=1, failed=1, bytes=1), 1)
    assert f"failed: {tmp_path}/bad: The item 's3://{bucket}/logs/bad' of uploads is damaged" in err


@pytest.mark.parametrize(
    "command",
    [
        *("uploadfiles s3://bucket/logs", "uploadfiles folder bucket/logs"),
        "uploadfiles --workers 33 folder s3://bucket/logs",
        "uploadfiles --content-type text folder s3://bucket/logs",
        *("checkuploads", "checkuploads s3://B/x"),
    ],
)
def test_wrong_usage_exits_2(command: str) -> None:
    out, err, code = run(*command.split())

    assert (out, code) == ("", 2)
    assert "usage" in err


def test_each_file_that_s3_refuses_is_reported(
    logs: str, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / name)
    s3_proxy.plan("PutObject", S3Answer(403, "AccessDenied"), times=3)

    out, err, code = run("uploadfiles", str(tmp_path), logs, "--json", "--workers", "1")

    assert (json.loads(out)["failed"], code) == (3, 1)
    assert err.count("AccessDenied") == 3
    assert s3_proxy.count("ListObjectsV2") == 1


#: What is wrong, where S3 and DynamoDB are then, and what the error is about.
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a bucket that does not exist": (nullcontext, "NoSuchBucket"),
    "S3 refuses everything": (nullcontext, "AccessDenied"),
    "S3 is away": (lambda: s3_at(NOWHERE), NOWHERE),
    # Signing needs them before anything is sent to this host, which does not exist.
    "no credentials": (lambda: s3_at("http://s3.invalid"), "Unable to locate credentials"),
    "DynamoDB is away": (lambda: through(NOWHERE), "DynamoDB gave no answer"),
}


@pytest.mark.parametrize("flags", [[], ["--dry-run"]], ids=["run", "dry run"])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_concerns_all_files_is_one_line_and_exit_code_1(
    logs: str,
    s3_proxy: S3Proxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wrong: str,
    flags: list[str],
) -> None:
    monkeypatch.setattr(storage, "ATTEMPTS", 1)
    away, about = WRONG[wrong]
    # A slow machine takes some time to find that there are no credentials.
    seconds = 0.9 if wrong == "DynamoDB is away" else PATIENCE_SECONDS
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", seconds)
    if wrong == "a bucket that does not exist":
        logs = "s3://no-such-bucket/logs"
    elif wrong == "S3 refuses everything":
        s3_proxy.plan("*", S3Answer(403, "AccessDenied"), times=1000)
    elif wrong == "no credentials":
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    for number in range(20):
        write(tmp_path / str(number))

    with away():
        out, err, code = run("uploadfiles", *flags, str(tmp_path), logs)

    assert (out, code, err.count("\n")) == ("", 1, 1)
    assert about in err
    assert s3_proxy.count() < 40
    monkeypatch.undo()
    assert rows() == {}
    assert locks() == []


# As a process: signals, terminals, pipes, encodings -----------------------------------------------


MANY = 1000


def started(*arguments: object) -> Forked:
    return start("manage.py", "uploadfiles", *arguments)


def assert_no_claim_is_open() -> None:
    assert [row for row in all_rows() if "lease" in row] == locks() == []


@pytest.fixture
def many_files(tmp_path: Path) -> Path:
    for number in range(MANY):
        (tmp_path / f"{number:04}").write_text(str(number))
    return tmp_path


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, None])
def test_a_signal_or_a_closed_pipe_ends_it_without_open_claims(
    logs: str, many_files: Path, sent: signal.Signals | None
) -> None:
    process = started("--verbose", many_files, logs)
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()

    if sent is None:
        process.stdout.close()
    else:
        process.send_signal(sent)
    # `communicate` would lose lines read ahead.
    out = "" if sent is None else process.stdout.read()
    err = process.stderr.read()
    process.stdout.close()
    process.stderr.close()

    if sent is None:
        assert (process.wait(timeout=120), err) == (141, "")
    else:
        assert (process.wait(timeout=120), err) == (130, "Interrupted: run it again to continue.\n")
        *lines, summary = [first.strip(), *out.splitlines()]
        assert summary.startswith(f"Uploaded {len(lines):,}, skipped 0, conflicts 0, failed 0; ")
        assert 0 < len(lines) < MANY
    assert_no_claim_is_open()
    assert run("checkuploads", logs)[2] == 0


def test_a_second_ctrl_c_ends_it_at_once(logs: str, s3_proxy: S3Proxy, tmp_path: Path) -> None:
    write(tmp_path / "a")
    put = threading.Event()
    ended = threading.Event()

    def hang() -> None:
        put.set()
        ended.wait(120)

    s3_proxy.plan("PutObject", Meanwhile(hang))
    process = started(tmp_path, logs)
    try:
        assert put.wait(120)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: not catches(process.pid, signal.SIGINT))

        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        ended.set()

    assert (process.returncode, out, err) == (-signal.SIGINT, "", "")


def test_a_terminal_shows_a_bar_of_files_and_bytes(logs: str, tmp_path: Path) -> None:
    for number in range(60):
        write(tmp_path / str(number), "x" * 1000)
    os.mkfifo(tmp_path / "fifo")

    shown, code = run_on_a_terminal("uploadfiles", str(tmp_path), logs, typed=[])

    assert code == 1
    assert f"failed: {tmp_path}/fifo: It is not a regular file.\r\n" in shown
    frames = re.split(r"[\r\n]+", shown)
    # Once everything is counted: files, share, bytes, time gone and left, rate.
    bar = r"\d+/61 files: +\d+%\|.*\| [\d.]+k?/60.0k \[\d\d:\d\d<\d\d:\d\d, .*B/s\]"
    assert any(re.search(bar, frame) for frame in frames)
    assert any(frame.startswith("61/61 files: 100%|") for frame in frames)
    assert "Uploaded 60, skipped 0, conflicts 0, failed 1; 58.6 KB in " in shown


def test_names_are_bytes_in_every_locale(logs: str, bucket: str, s3: Any, tmp_path: Path) -> None:
    write(tmp_path / "日本 🎌", "contents")
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

    out, err, code = run_for_real(
        "uploadfiles", "--verbose", str(tmp_path), logs, env=os.environ | plain
    )

    assert (err, code) == ("", 0)
    assert out.isascii()
    assert "uploaded: " in out
    assert s3.get_object(Bucket=bucket, Key="logs/日本 🎌")["Body"].read() == b"contents"
