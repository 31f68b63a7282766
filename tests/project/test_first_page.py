"""`make run` on a checkout that is installed: from the command to the first page, and to Ctrl-C."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.engines import free_port, is_listening
from tests.environment import clean_environment
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_SECONDS = 60.0


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """What git has of the checkout, with its `.venv`, and an engine and data of its own."""
    # Else the copy would find its packages out of date, and install itself into our `.venv`.
    subprocess.run(["make", "install"], cwd=ROOT, check=True, capture_output=True)
    listed = subprocess.check_output(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True
    )
    for name in listed.splitlines():
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy2(ROOT / name, copy)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    yield tmp_path
    stop = [sys.executable, "manage.py", "localdynamodb", "stop"]
    subprocess.run(stop, cwd=tmp_path, env=clean_environment(), check=True, capture_output=True)


def status_of(url: str) -> int:
    """The status of a page, 0 if no server listens."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as page:  # noqa: S310 - ours
            return int(page.status)
    except urllib.error.URLError:
        return 0


@pytest.mark.slow
def test_the_first_page_is_served_and_ctrl_c_ends_everything(checkout: Path) -> None:
    port = free_port()
    began = time.monotonic()
    server = subprocess.Popen(
        ["make", "run", f"PORT={port}"],
        cwd=checkout,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        while status_of(f"http://127.0.0.1:{port}/") != 200:
            assert server.poll() is None, server.communicate()[0].decode()
            assert time.monotonic() < began + PATIENCE_SECONDS
            time.sleep(0.01)

        # As a terminal sends it: to make, the server and its reloader.
        os.killpg(server.pid, signal.SIGINT)
        server.wait(PATIENCE_SECONDS)
        wait_until(lambda: not is_listening(port))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.communicate()
