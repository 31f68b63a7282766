"""A process that serves the site as `make run` does, debug toolbar included."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.commands import ROOT
from tests.engines import free_port
from tests.waiting import wait_until


@contextmanager
def development_server(engine_url: str) -> Iterator[str]:
    """Serve the site on this engine; yields the address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "DJANGO_DEBUG_TOOLBAR": "on",
        "AWS_ENDPOINT_URL_DYNAMODB": engine_url,
    }
    server = subprocess.Popen(
        [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        assert server.poll() is None
        try:
            with urllib.request.urlopen(f"{address}/livez") as answer:  # noqa: S310 - ours
                return bool(answer.status == 200)
        except urllib.error.URLError:
            return False

    try:
        wait_until(answers)
        yield address
    finally:
        server.kill()
        server.wait()
