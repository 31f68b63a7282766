"""Fixtures of the tests about accounts."""

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.limits.windows import DEFAULTS
from tests.mailbox import MailServer, sent_by
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
def limits(settings: Any) -> dict[str, tuple[int, int] | None]:
    """The rate limits of this test: only those that it sets."""
    settings.ACCOUNTS_LIMITS = dict.fromkeys(DEFAULTS)
    chosen: dict[str, tuple[int, int] | None] = settings.ACCOUNTS_LIMITS
    return chosen


@pytest.fixture
def no_mail(settings: Any) -> Iterator[None]:
    """A mail server that refuses every mail."""
    with MailServer(answer="550 no such user") as server:
        sent_by(settings, server.port)
        yield
        assert server.taken == []
