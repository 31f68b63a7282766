"""`withlock` stopped by Ctrl-Z: its command stops too, and continues only with the lease."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.forked import Forked
from tests.locks.items import stored, taken
from tests.programs import start
from tests.waiting import catches, wait_until

pytestmark = pytest.mark.usefixtures("engine")

# Not a shell: if it is stopped during a vfork, it waits for its child in the state D instead of T.
_COUNTING = """
import os, signal, sys, time
from pathlib import Path

folder = Path(sys.argv[1])

def end(*_signal):
    (folder / "term").touch()
    sys.exit()

signal.signal(signal.SIGTERM, end)
(folder / "pid.new").write_text(str(os.getpid()))
(folder / "pid.new").rename(folder / "pid")
while not (folder / "end").exists():
    time.sleep(0.02)
sys.exit(9)
"""


@contextmanager
def job(*arguments: str) -> Iterator[Forked]:
    """Run `withlock` as a job of a shell."""
    with start("manage.py", "withlock", *arguments, job=True) as process:
        try:
            yield process
        finally:
            # This also kills a stopped process.
            process.kill()


def is_stopped(pid: int) -> bool:
    asked = ["ps", "-o", "stat=", "-p", str(pid)]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout[:1] == "T"


def stop(process: Forked, command: int) -> None:
    process.send_signal(signal.SIGTSTP)
    wait_until(lambda: is_stopped(process.pid) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    # SIGSTOP was sent before, but takes effect only when the process gets CPU time.
    wait_until(lambda: is_stopped(command))


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[tuple[list[str], Path, Path]]:
    """A command that writes its process id to a file and ends when another file exists."""
    pid, end = tmp_path / "pid", tmp_path / "end"
    yield [sys.executable, "-I", "-c", _COUNTING, str(tmp_path)], pid, end
    if pid.exists():
        try:
            os.killpg(int(pid.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            return


def test_a_command_stops_and_continues_with_it_while_the_lease_lasts(
    counting: tuple[list[str], Path, Path],
) -> None:
    command, pid, end = counting
    with job("a", "--", *command) as process:
        wait_until(pid.exists)
        stop(process, int(pid.read_text()))
        end.touch()
        assert is_stopped(int(pid.read_text()))

        process.send_signal(signal.SIGCONT)

        assert process.wait(120) == 9
    assert stored("a")["isReleased"] == {"S": "1"}


def test_a_command_that_was_stopped_for_longer_than_its_lease_is_ended(
    counting: tuple[list[str], Path, Path], tmp_path: Path
) -> None:
    command, pid, _end = counting
    with job("a", "--lease", "4", "--", *command) as process:
        wait_until(pid.exists)
        stop(process, int(pid.read_text()))
        next_holder = taken("a", wait_seconds=60, poll_seconds=0.05)

        process.send_signal(signal.SIGCONT)

        assert process.wait(120) == 70
        assert process.stderr is not None
        assert "is lost: it was not renewed in time. The command has ended." in (
            process.stderr.read()
        )
    assert (tmp_path / "term").exists()
    next_holder.renew()


def test_it_can_be_stopped_while_it_waits(
    counting: tuple[list[str], Path, Path],
) -> None:
    command, pid, end = counting
    holder = taken("a")
    with job("a", "--wait", "60", "--", *command) as process:
        wait_until(lambda: catches(process.pid, signal.SIGTSTP))
        process.send_signal(signal.SIGTSTP)
        wait_until(lambda: is_stopped(process.pid))
        holder.release()

        process.send_signal(signal.SIGCONT)

        wait_until(pid.exists)
        end.touch()
        assert process.wait(120) == 9
