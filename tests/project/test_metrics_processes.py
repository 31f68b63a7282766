"""`/metrics` of a server with several processes: whichever is asked tells what all of them did."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.engines import free_port
from tests.waiting import wait_until

TOKEN = "a-token-of-the-tests-and-of-nobody-else"
PAGES = 40


def get(url: str, **headers: str) -> str:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - ours
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        text: str = answer.read().decode()
        return text


@pytest.fixture
def server(engine: str, tmp_path: Path) -> Iterator[str]:
    """The site by granian with two processes, each of which takes connections; its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "AWS_ENDPOINT_URL_DYNAMODB": engine,
        "DJANGO_METRICS_TOKEN": TOKEN,
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path),
    }
    program = str(Path(sys.executable).with_name("granian"))
    arguments = ["--interface", "wsgi", "--workers", "2", "--host", "127.0.0.1"]
    process = subprocess.Popen(
        [program, *arguments, "--port", str(port), "project.wsgi:application"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def answers() -> bool:
        assert process.poll() is None
        try:
            return get(f"{address}/livez") == "ok\n"
        except urllib.error.URLError:
            return False

    try:
        wait_until(answers)
        yield address
    finally:
        # Not as it is to be ended: nobody waits here for what it does then.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_two_processes_of_a_server_tell_one_sum(server: str, tmp_path: Path) -> None:
    def pages() -> float:
        told = get(f"{server}/metrics", Authorization=f"Bearer {TOKEN}")
        found = re.search(r'^http_requests_total{.*status="200".*url="home"} (\S+)', told, re.M)
        return float(found[1]) if found else 0.0

    def processes() -> set[str]:
        return {file.stem for file in tmp_path.glob("counter_*.db")}

    sent = 0
    while len(processes()) < 2 or sent < PAGES:
        get(f"{server}/")
        sent += 1
        assert sent < 50 * PAGES

    assert [pages() for _ask in range(6)] == [sent] * 6
