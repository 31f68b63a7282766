"""Rate limits on sign-ups and on mails that anybody can request: refused without a trace."""

from typing import Any

import pytest
from django.core import mail
from django.test import Client

from accounts.models import User
from tests.accounts.rate_limits import assert_too_many, let_pass
from tests.factories import PASSWORD, make_user, stored_items
from tests.pages import Page, sign_up, stored_counts, stored_sessions

RESET = "/accounts/password_reset/"
REMINDER = "/accounts/username_reminder/"


@pytest.mark.parametrize(
    ("url", "other", "spellings"),
    [
        (RESET, REMINDER, ["ann@example.org", "ANN@EXAMPLE.org"]),
        (REMINDER, RESET, ["x@bücher.example", "X@xn--bcher-kva.example"]),
    ],
    ids=["known", "unknown"],
)
def test_an_address_gets_five_mails_of_a_kind_an_hour_in_any_spelling(
    ann: User, client: Client, url: str, other: str, spellings: list[str]
) -> None:
    asked = [client.post(url, {"email": spellings[number % 2]}) for number in range(5)]
    assert [response.status_code for response in asked] == [302] * 5

    page = assert_too_many(client.post(url, {"email": spellings[1]}))

    assert "You can try again in 60 minutes." in page.text
    assert "password" not in page.text
    assert len(mail.outbox) == 5
    assert client.post(url, {"email": "another@example.org"}).status_code == 302
    # So reminders do not prevent a password reset.
    assert client.post(other, {"email": spellings[0]}).status_code == 302
    let_pass(3601)
    assert client.post(url, {"email": spellings[0]}).status_code == 302


def test_addresses_of_one_mailbox_get_five_mails_an_hour_together(
    engine: str, client: Client
) -> None:
    asked = [f'"{name}"@example.org' for name in ("ann", r"a\nn", r"an\n", r"\ann", r"\a\n\n")]
    for address in asked:
        user = make_user()
        # Of a version that allowed quotes.
        user.change(email=address)
        assert client.post(RESET, {"email": address}).status_code == 302

    for address in ("ann@example.org", "ann+1@example.org", asked[0]):
        assert_too_many(client.post(RESET, {"email": address}))

    assert len(mail.outbox) == 5


def test_a_client_over_its_limit_of_mails_uses_up_none_of_an_address(
    ann: User, client: Client, limits: dict[str, Any]
) -> None:
    limits |= {"mail_client": (2, 3600), "mail": (2, 3600)}
    for number in range(2):
        assert client.post(RESET, {"email": f"x{number}@example.org"}).status_code == 302
    counted = len(stored_counts())

    assert client.post(REMINDER, {"email": "ann@example.org"}).status_code == 429

    assert len(stored_counts()) == counted


@pytest.mark.parametrize(
    ("url", "typed"),
    [
        ("/accounts/confirm/send/", {}),
        ("/accounts/email/", {"email": "new@example.org", "password": PASSWORD}),
    ],
)
def test_a_mail_over_the_limit_is_not_sent_and_nothing_changes(
    ann: User, client: Client, limits: dict[str, Any], url: str, typed: dict[str, str]
) -> None:
    limits["mail"] = (1, 3600)
    client.force_login(ann)
    assert client.post(url, typed).status_code == 302
    before, sent = stored_items(), len(mail.outbox)

    response = client.post(url, typed | {"email": "NEW@example.org"})

    assert response.status_code == 429
    assert (stored_items(), len(mail.outbox)) == (before, sent)


def test_sign_ups_of_a_client_are_limited_and_then_use_up_no_mails_of_an_address(
    ann: User, client: Client, limits: dict[str, Any]
) -> None:
    limits |= {"sign_up_client": (1, 3600), "mail": (2, 3600)}
    assert sign_up(Client(), username="first", email="first@example.org").status_code == 302
    before, sent = stored_items(), len(mail.outbox)

    for email in ("ann@example.org", *["new@example.org"] * 4):
        assert sign_up(Client(), username="another", email=email).status_code == 429

    assert (stored_items(), len(mail.outbox)) == (before, sent)
    limits["sign_up_client"] = (100, 3600)
    assert sign_up(client, username="bob", email="new@example.org").status_code == 302


def test_pending_sign_ups_send_an_address_five_mails_an_hour(ann: User, settings: Any) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = True
    for number in range(5):
        assert sign_up(Client(), username=f"user{number}x", email=ann.email).status_code == 302
    held = stored_sessions()

    assert sign_up(Client(), username="another", email=ann.email.upper()).status_code == 429

    assert len(mail.outbox) == 5
    assert stored_sessions() == held


def test_a_refused_sign_up_does_not_count_as_a_mail(ann: User, client: Client) -> None:
    for _attempt in range(7):
        assert "username" in Page(sign_up(client, username="ANN", email="new@example.org")).errors

    assert sign_up(client, username="bob", email="new@example.org").status_code == 302
