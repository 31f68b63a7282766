"""`ACCOUNTS_EMAIL_CHANGE=confirm`: the page, the link and the button of a change that waits.

What holds for all links in mails: tests/accounts/test_mailed_links.py.
"""

import re
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from accounts.emails import links
from accounts.models import User
from tests.emailchanges import NEW, NEW_KEY, again, days_later, token_of
from tests.factories import PASSWORD, assert_guards_match_users, guard_owner, make_user
from tests.mailbox import link, told_by
from tests.pages import Page

pytestmark = pytest.mark.usefixtures("ann_is_signed_in")

PROFILE = "/accounts/profile/"
EMAIL = "/accounts/email/"
CANCEL = "/accounts/email/cancel/"
OLD = "ann@example.org"
SENT = "We sent a link to your new email address. Follow it to make the change."


@pytest.fixture(autouse=True)
def _changes_wait(settings: Any, ann: User) -> None:
    settings.ACCOUNTS_EMAIL_CHANGE = "confirm"
    links.mark_confirmed(ann)


def ask(client: Client, email: str = NEW) -> Any:
    return client.post(EMAIL, {"email": email, "password": PASSWORD})


def recipients() -> list[list[str]]:
    return [message.to for message in mail.outbox]


def test_a_change_is_mailed_to_the_new_address_and_shown_as_waiting(
    client: Client, ann: User
) -> None:
    assert "when you follow it" in Page(client.get(EMAIL)).text

    response = ask(client)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    assert recipients() == [[NEW]]
    assert not re.search(r"\bann\b(?!@)", told_by(mail.outbox[0]))
    page = Page(client.get(PROFILE))
    assert page.messages == [SENT]
    assert f"It becomes {NEW} when you follow the link" in " ".join(page.text.split())
    assert "Cancel this change" in page.text
    assert again(ann).email == OLD
    assert guard_owner("email#ann@example.org") == ann.pk
    assert_guards_match_users()

    with days_later():
        text = Page(client.get(PROFILE)).text
    assert "Cancel this change" not in text
    assert NEW not in text


def test_a_link_to_an_address_of_another_account_says_so_and_the_form_does_not(
    client: Client, ann: User
) -> None:
    make_user(email=NEW)
    assert ask(client).status_code == 302
    assert Page(client.get(PROFILE)).messages == [SENT]

    response = client.post(f"/accounts/email/confirm/{token_of(again(ann))}/")

    assert response.status_code == 409
    assert "Another account now has the same: Email" in Page(response).text
    assert again(ann).email == OLD


def test_the_button_cancels_the_change(client: Client, ann: User) -> None:
    ask(client)
    client.get(PROFILE)
    assert client.get(CANCEL).status_code == 405

    response = client.post(CANCEL)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    page = Page(client.get(PROFILE))
    assert page.messages == ["The change was canceled. Your email address stays the same."]
    assert "Cancel this change" not in page.text
    assert guard_owner(NEW_KEY) is None
    assert client.post(link()).status_code == 410
    assert_guards_match_users()


def test_the_page_says_if_the_mail_could_not_be_sent_and_the_change_can_be_requested_again(
    client: Client, ann: User, settings: Any
) -> None:
    backend = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    ask(client)
    settings.EMAIL_BACKEND = backend

    page = Page(client.get(PROFILE))
    assert "The mail could not be sent. Please request the change again later." in page.messages

    ask(client)
    assert client.post(link()).status_code == 302
    assert again(ann).email == NEW
