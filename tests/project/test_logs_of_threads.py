"""Messages that Python itself writes to stderr: errors that end threads, and warnings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fork_server import fork_server
from tests.production import PRODUCTION

PROGRAM = """
import threading, warnings
import django
django.setup()
import project.urls  # as a server does at its first request

def fail():
    raise ValueError("GET /accounts/email/confirm/s3cret-t0ken/")

def leave():
    raise SystemExit

for target in (fail, leave):
    thread = threading.Thread(target=target, name="worker-7")
    thread.start()
    thread.join()
warnings.warn("this will be gone")
"""


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    """Production's log lines of a thread that fails, one that exits, and a warning."""
    environment = {
        **PRODUCTION,
        "DJANGO_DEBUG": "off",
        "DJANGO_LOG_FORMAT": "json",
        "DJANGO_SETTINGS_MODULE": "project.settings",
    }
    ended = fork_server.run("-c", PROGRAM, env=environment)
    return [json.loads(line) for line in ended.stderr.splitlines()]


def test_the_error_that_ends_a_thread_is_one_line_without_secrets(
    lines: list[dict[str, Any]],
) -> None:
    of_threads = [line for line in lines if line["logger"] == "project.logs"]

    assert [line["message"] for line in of_threads] == ["The thread worker-7 ended with an error"]
    assert of_threads[0]["level"] == "ERROR"
    assert of_threads[0]["exception"].endswith("ValueError: GET /accounts/email/confirm/[hidden]/")


def test_a_warning_is_a_line(lines: list[dict[str, Any]]) -> None:
    warned = [line["message"] for line in lines if line["logger"] == "py.warnings"]

    assert [message.split("UserWarning: ")[1].splitlines()[0] for message in warned] == [
        "this will be gone"
    ]
