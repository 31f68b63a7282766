"""Ann, who issues invoices."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import User


@pytest.fixture
def ann(ann: User, client: Client) -> User:
    """An account whose owner is signed in as `client`."""
    client.force_login(ann)
    return ann
