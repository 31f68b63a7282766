"""Fixtures of the tests about accounts."""

from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher

from accounts.conf import LIMITS
from tests.pages import sign_in


@pytest.fixture
def ann_is_signed_in(request: pytest.FixtureRequest) -> None:
    """Ann is signed in as `client`, if the test uses both."""
    if {"ann", "client"} <= set(request.fixturenames):
        sign_in(request.getfixturevalue("client"), request.getfixturevalue("ann"))


@pytest.fixture
def changes_at_once(settings: Any) -> None:
    """A new email address does not wait for its link."""
    settings.ACCOUNTS_EMAIL_CHANGE = "immediate"


@pytest.fixture
def hashings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that are hashed from here on, with Django's hasher for tests."""
    hashed = []
    encode = MD5PasswordHasher.encode

    def counted(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashed.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    return hashed


@pytest.fixture
def real_hashers(settings: Any) -> list[str]:
    """The PASSWORD_HASHERS of the project, without the cheap one of tests."""
    return list(settings.PASSWORD_HASHERS[1:])


@pytest.fixture
def limits(settings: Any) -> dict[str, tuple[int, int] | None]:
    """The rate limits of this test: only those that it sets."""
    settings.ACCOUNTS_LIMITS = dict.fromkeys(LIMITS)
    chosen: dict[str, tuple[int, int] | None] = settings.ACCOUNTS_LIMITS
    return chosen
