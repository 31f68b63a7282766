"""Who issues invoices: Ann, or an account that is only a key."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.emails.links import mark_confirmed
from accounts.models import User
from invoices.document import fonts
from invoices.document.invoice import Customer
from invoices.output import pdf
from tests.clocks import hold_the_day
from tests.factories import make_user
from tests.fonts import FOLDER
from tests.invoice_factories import DAY, issued, new_account
from tests.invoices.forms import TODAY
from tests.project.test_helper import end_helper


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


def look_for_fonts_again() -> None:
    """A process looks for its fonts once."""
    for item in (fonts.installed, fonts._coverage, fonts._fonts_with, pdf._fonts, pdf._kept):
        item.cache_clear()
    end_helper()


@pytest.fixture
def font_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Path]:
    """Debian's folder of fonts for all processes that the test starts; empty at first."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    settings.INVOICES_FONT_FOLDER = str(tmp_path)
    look_for_fonts_again()
    yield tmp_path
    look_for_fonts_again()
