"""Fixtures of tasks: the backend, and a worker that runs what is due."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from pytest_django import Settings

from outbox import test
from outbox.worker import Ran
from tests.outbox import functions

RunTasks = Callable[..., list[Ran]]


@pytest.fixture(autouse=True)
def backend(settings: Settings, engine: str) -> Iterator[dict[str, Any]]:
    """OPTIONS of the backend, which a test may change before its first task."""
    options: dict[str, Any] = {"RETRY": {}}
    settings.TASKS = {
        "default": {
            "BACKEND": "outbox.TaskBackend",
            "QUEUES": ["default", "mails"],
            "OPTIONS": options,
        }
    }
    functions.CALLS.clear()
    functions.GO.clear()
    yield options
    functions.GO.set()


@pytest.fixture
def run_tasks() -> RunTasks:
    """Runs the tasks that are due, and returns the attempts."""
    return partial(test.run_tasks, raise_errors=False)
