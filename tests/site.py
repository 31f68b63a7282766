"""Fixtures of the whole suite that need the site."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import override_settings

from accounts.models import User
from dynamo.auth import passwords
from invoices.document import fonts
from invoices.pages import downloads
from tests.conftest import PATIENCE_SECONDS
from tests.factories import make_user
from web import helper, mailserver


@pytest.fixture(scope="session", autouse=True)
def _site_suited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What all tests share."""
    with pytest.MonkeyPatch.context() as patch:
        # No fonts of Debian, whether installed or not; tests of fonts name their folder.
        patch.setattr(fonts, "DEBIAN_FOLDER", tmp_path_factory.mktemp("fonts"))
        # A slow machine does not look busy; tests of waiting set their own.
        patch.setattr(passwords, "WAIT_SECONDS", PATIENCE_SECONDS)
        patch.setattr(mailserver, "WAIT_SECONDS", PATIENCE_SECONDS)
        # The helper is nicer than all other processes of the machine.
        patch.setattr(helper, "SECONDS", 10 * PATIENCE_SECONDS)
        # As on a server, though tests import the module of AWS Lambda.
        patch.setattr(helper, "_is_here", False)
        # Argon2 is slow on purpose; tests of hashes set their own.
        cheap = "django.contrib.auth.hashers.MD5PasswordHasher"
        with override_settings(PASSWORD_HASHERS=[cheap, *settings.PASSWORD_HASHERS]):
            yield


@pytest.fixture
def ann(engine: str) -> User:
    """An account."""
    return make_user(username="ann", email="ann@example.org")


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """Neither an open download, nor a mail server that hangs, nor the module of AWS Lambda."""
    yield
    downloads._running.reset()
    mailserver._of_process.reset()
    helper._is_here = False
