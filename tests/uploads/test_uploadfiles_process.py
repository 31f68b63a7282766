"""`uploadfiles` as a process: signals, terminals, pipes and encodings."""

import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run, run_for_real, run_on_a_terminal
from tests.faults.kinds import Meanwhile
from tests.forked import Forked
from tests.programs import start
from tests.uploads.folders import write
from tests.uploads.s3_proxy import S3Proxy
from tests.uploads.samples import all_rows, locks
from tests.waiting import catches, wait_until

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


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_summary_no_open_claim_and_130(
    logs: str, many_files: Path, sent: signal.Signals
) -> None:
    process = started("--verbose", many_files, logs)
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()

    process.send_signal(sent)
    # `communicate` would lose lines read ahead.
    with process.stdout, process.stderr:
        out, err = process.stdout.read(), process.stderr.read()

    assert (process.wait(timeout=120), err) == (130, "Interrupted: run it again to continue.\n")
    *lines, summary = [first.strip(), *out.splitlines()]
    assert summary.startswith(f"Uploaded {len(lines):,}, skipped 0, conflicts 0, failed 0; ")
    assert 0 < len(lines) < MANY
    assert_no_claim_is_open()
    assert run("checkuploads", logs)[2] == 0


def test_a_second_ctrl_c_ends_it_at_once(logs: str, s3_proxy: S3Proxy, tmp_path: Path) -> None:
    write(tmp_path / "a")
    put, ended = threading.Event(), threading.Event()

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


def test_a_terminal_shows_a_bar_of_files_and_bytes_below_the_failures(
    logs: str, tmp_path: Path
) -> None:
    for number in range(60):
        write(tmp_path / str(number), "x" * 1000)
    os.mkfifo(tmp_path / "fifo")

    shown, code = run_on_a_terminal("uploadfiles", str(tmp_path), logs, typed=[])

    assert code == 1
    assert f"failed: {tmp_path}/fifo: It is not a regular file.\r\n" in shown
    frames = re.split(r"[\r\n]+", shown)
    # Once everything is counted: files, share, bytes, time gone and left, rate.
    bar = r"\d+/61 files +\d+%\|.*\| [\d.]+k?B/60.0kB \[\d\d:\d\d<\d\d:\d\d, .*B/s\]"
    assert any(re.search(bar, frame) for frame in frames)
    assert any(frame.startswith("61/61 files 100%|") for frame in frames)
    assert "Uploaded 60, skipped 0, conflicts 0, failed 1; 58.6 KB in " in shown


def test_a_closed_pipe_ends_the_run_without_open_claims(logs: str, many_files: Path) -> None:
    process = started("--verbose", many_files, logs)
    assert process.stdout is not None
    assert process.stderr is not None

    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()

    assert (process.wait(timeout=120), err) == (141, "")
    assert_no_claim_is_open()


def test_names_are_bytes_whatever_the_locale(
    logs: str, bucket: str, s3: Any, tmp_path: Path
) -> None:
    write(tmp_path / "日本 🎌", "contents")
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

    out, err, code = run_for_real(
        "uploadfiles", "--verbose", str(tmp_path), logs, env=os.environ | plain
    )

    assert (err, code) == ("", 0)
    assert out.isascii()
    assert "uploaded: " in out
    assert s3.get_object(Bucket=bucket, Key="logs/日本 🎌")["Body"].read() == b"contents"
