"""Who issues invoices: Ann, or an account that is only a key."""

from datetime import timedelta

import pytest
from django.test import Client

from accounts.emails.links import mark_confirmed
from accounts.models import User
from invoices.document.invoice import Customer
from tests.clocks import hold_the_day
from tests.factories import make_user
from tests.invoice_factories import DAY, issued, new_account
from tests.invoices.forms import TODAY


@pytest.fixture
def ann(ann: User, client: Client) -> User:
    """An account whose owner is signed in as `client`."""
    client.force_login(ann)
    return ann


@pytest.fixture
def held_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The date stays `TODAY`."""
    hold_the_day(TODAY, monkeypatch)


@pytest.fixture
def account(engine: str) -> str:
    """The primary key of an account without invoices."""
    return new_account()


@pytest.fixture
def sender(engine: str, client: Client) -> User:
    """Ann with a confirmed address, signed in as `client`, and an invoice to Bob's address."""
    # The keys are the same in each test, so the PDF is typeset once.
    user = make_user(username="ann", email="ann@example.org", request_id="ann")
    mark_confirmed(User.get(user.pk))
    bob = Customer("Bob <b>Ltd</b>", email="bob@example.org")
    issued(user.pk, customer=bob, due_date=DAY + timedelta(days=7), request_id="first")
    client.force_login(user)
    return User.get(user.pk)
