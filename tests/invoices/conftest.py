"""Who issues invoices: Ann, or an account that is only a key."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import User
from tests.invoice_factories import new_account


@pytest.fixture
def ann(ann: User, client: Client) -> User:
    """An account whose owner is signed in as `client`."""
    client.force_login(ann)
    return ann


@pytest.fixture
def account(engine: str) -> str:
    """The primary key of an account without invoices."""
    return new_account()
