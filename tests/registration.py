"""Fixtures of the tests that need accounts."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import override_settings

from accounts import models
from accounts.emails import mailserver
from dynamo.auth import passwords
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
        patch.setattr(mailserver, "WAIT_SECONDS", PATIENCE_SECONDS)
        # Argon2 is slow on purpose; tests of hashes set their own.
        cheap = "django.contrib.auth.hashers.MD5PasswordHasher"
        with override_settings(PASSWORD_HASHERS=[cheap, *settings.PASSWORD_HASHERS]):
            yield


@pytest.fixture
def ann(engine: str) -> models.User:
    """An account."""
    return make_user(username="ann", email="ann@example.org")


@pytest.fixture(autouse=True)
def _no_mail_server_is_left_behind() -> Iterator[None]:
    yield
    mailserver._of_process.reset()
