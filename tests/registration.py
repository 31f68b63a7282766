"""Fixtures of the tests that need accounts."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from accounts import models
from dynamo.auth import passwords
from outbox.backend import TaskBackend
from outbox.test import run_tasks
from outbox.worker import Ran
from tests.conftest import PATIENCE_SECONDS

if not hasattr(models, "User"):
    # In a project with a model of its own, tests import that by this name.
    models.User = models.account_model()

from tests.factories import make_user


@pytest.fixture(scope="session", autouse=True)
def _accounts_suited() -> Iterator[None]:
    """What all tests share."""
    with pytest.MonkeyPatch.context() as patch:
        # A slow machine does not look busy; tests of waiting set their own.
        patch.setattr(passwords, "WAIT_SECONDS", PATIENCE_SECONDS)
        # Argon2 is slow on purpose; tests of hashes set their own.
        cheap = "django.contrib.auth.hashers.MD5PasswordHasher"
        hashers = [cheap, *settings.PASSWORD_HASHERS]
        # Mails are sent at once, after the commit; tests of tasks use `worker`.
        tasks = {"default": {"BACKEND": "outbox.ImmediateBackend"}}
        # Tests count requests; the test of this one sets its own time.
        patch.setattr(TaskBackend, "_looks_at", math.inf)
        with override_settings(PASSWORD_HASHERS=hashers, TASKS=tasks):
            yield


@pytest.fixture
def ann(engine: str) -> models.User:
    """An account."""
    return make_user(username="ann", email="ann@example.org")


RunTasks = Callable[[], list[Ran]]


@pytest.fixture
def worker(settings: Any, engine: str) -> RunTasks:
    """From now on tasks are stored, as on a site with a worker. The result runs those that wait."""
    repeated = {"RETRY": {"*": {"delay": 0}}}
    settings.TASKS = {"default": {"BACKEND": "outbox.TaskBackend", "OPTIONS": repeated}}
    return partial(run_tasks, raise_errors=False)
