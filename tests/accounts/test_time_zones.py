"""The time zone of an account: preset by the browser, and that of all times that pages show."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.services import edit_profile
from invoices.store.issuing import issue_invoice
from tests.factories import make_user
from tests.invoice_factories import DAY, SELLER, draft, put_sendings
from tests.mailbox import link
from tests.pages import Page, sign_up

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize(
    ("zone", "stored", "hidden"),
    [
        *((zone, None, False) for zone in ("", "../x")),
        *(("Asia/Tokyo", "Asia/Tokyo", hidden) for hidden in (False, True)),
    ],
)
def test_a_new_account_gets_the_zone_of_the_browser(
    client: Client, settings: Any, zone: str, stored: str | None, hidden: bool
) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = hidden

    assert sign_up(client, time_zone=zone).status_code == 302
    if hidden:
        client.post(link())

    assert User.named("ann").time_zone == stored


def test_every_time_is_local_and_names_its_zone(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 11, 23, 20, tzinfo=UTC))
    ann = make_user()
    client.force_login(ann)  # type: ignore[arg-type]  # the stubs want a model
    edit_profile(User.get(ann.pk), time_zone="Asia/Tokyo")

    # What the middleware activates ends with the request.
    for page in ("/accounts/sessions/", "/accounts/profile/"):
        text = Page(client.get(page)).text
        assert " UTC" not in text
        assert " JST" in text
    assert timezone.get_current_timezone_name() == "UTC"
    edit_profile(User.get(ann.pk), time_zone="")
    assert " UTC" in Page(client.get("/accounts/sessions/")).text


def test_the_log_of_sendings_names_the_zone(client: Client) -> None:
    ann = make_user()
    client.force_login(ann)  # type: ignore[arg-type]  # as above
    edit_profile(User.get(ann.pk), time_zone="Asia/Tokyo")
    invoice = issue_invoice(draft(day=DAY), account=ann.pk, seller=SELLER)
    sent = {"to": "bob@example.org", "at": "2026-11-23T20:00:00+00:00", "outcome": "sent"}
    put_sendings(ann.pk, invoice.label, {"r": sent})

    text = Page(client.get(f"/invoices/{invoice.label}/")).text

    assert "Nov. 24, 2026, 5 a.m. JST, bob@example.org" in text
