"""Fixtures of the whole suite that need the site."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo.auth import passwords
from invoices.document import fonts
from invoices.pages import downloads
from tests.conftest import PATIENCE_SECONDS
from web import helper, mailserver


@pytest.fixture(scope="session", autouse=True)
def _no_fonts_of_the_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No fonts of Debian, whether installed or not; tests of fonts name their folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fonts, "DEBIAN_FOLDER", tmp_path_factory.mktemp("fonts"))
        yield


@pytest.fixture(autouse=True)
def _no_download_is_left_open() -> Iterator[None]:
    """Otherwise a download that a test did not read would count in the next test."""
    yield
    downloads._running.reset()


@pytest.fixture(autouse=True)
def _no_mail_server_hangs() -> Iterator[None]:
    """Otherwise a mail that timed out in a test would prevent those of the next test."""
    yield
    mailserver._of_process.reset()


@pytest.fixture(autouse=True)
def _helper_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a server, also after a test that imported the module of AWS Lambda."""
    monkeypatch.setattr(helper, "_is_here", False)


@pytest.fixture(autouse=True)
def _patient_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine does not look busy; tests of waiting set their own."""
    monkeypatch.setattr(passwords, "WAIT_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(mailserver, "WAIT_SECONDS", PATIENCE_SECONDS)
    # The helper is nicer than all other processes of the machine.
    monkeypatch.setattr(helper, "SECONDS", 10 * PATIENCE_SECONDS)


@pytest.fixture(autouse=True)
def _cheap_password_hashes(settings: Any) -> None:
    """Argon2 is slow on purpose; tests of hashes set their own."""
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher",
        *settings.PASSWORD_HASHERS,
    ]
