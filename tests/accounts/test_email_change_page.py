"""The page that changes the address where that waits for a link; the link, and the button."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.services import delete
from tests.emailchanges import NEW, NEW_KEY, again, days_later, token_of
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    guard_owner,
    make_user,
    stored_items,
)
from tests.mailbox import told_by
from tests.pages import Page, sign_in, signed_in_as

PROFILE = "/accounts/profile/"
EMAIL = "/accounts/email/"
CANCEL = "/accounts/email/cancel/"
OLD = "Ann@example.org"
RESERVED = (
    "Your new email address is reserved. Follow the link that we sent to it to make the change."
)


@pytest.fixture(autouse=True)
def _confirmed(settings: Any) -> None:
    settings.ACCOUNTS_EMAIL_CHANGE = "confirm"


@pytest.fixture
def ann(engine: str, client: Client) -> User:
    """An account whose owner is signed in as `client`."""
    user = make_user(username="Ann", email=OLD)
    sign_in(client, user)
    return user


def ask(client: Client, email: str = NEW) -> Any:
    return client.post(EMAIL, {"email": email, "password": PASSWORD})


def link_in(mail: Any) -> str:
    """The path of the link that a mail carries."""
    [path] = re.findall(r"^http://testserver(/\S+)$", mail.body, re.MULTILINE)
    return str(path)


def test_a_change_is_mailed_to_the_new_address_and_shown_as_waiting(
    client: Client, ann: User, mailoutbox: list[Any]
) -> None:
    response = ask(client)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    [mail] = mailoutbox
    assert mail.to == [NEW]
    assert "Ann" not in told_by(mail)
    page = Page(client.get(PROFILE))
    assert page.messages == [RESERVED]
    assert f"It becomes {NEW} when you follow the link" in " ".join(page.text.split())
    assert "Cancel this change" in page.text
    assert again(ann).email == OLD
    assert guard_owner("email#ann@example.org") == ann.pk
    assert_guards_match_users()


def test_the_form_says_that_the_change_waits_for_a_link(client: Client, ann: User) -> None:
    assert "when you follow it" in Page(client.get(EMAIL)).text


def test_the_link_changes_the_address_and_the_old_one_is_told(
    client: Client, ann: User, mailoutbox: list[Any]
) -> None:
    ask(client)

    response = client.post(link_in(mailoutbox[0]))

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    assert [mail.to for mail in mailoutbox] == [[NEW], [OLD]]
    assert "was changed" in mailoutbox[1].body
    page = Page(client.get(PROFILE))
    assert page.messages[-1] == "Your email address was changed and confirmed."
    assert NEW in page.text
    assert "Cancel this change" not in page.text
    assert again(ann).is_confirmed
    assert signed_in_as(client) == "Ann"
    assert_guards_match_users()


def test_the_link_followed_again_says_the_same_and_mails_nobody(
    client: Client, ann: User, mailoutbox: list[Any]
) -> None:
    ask(client)
    client.post(link_in(mailoutbox[0]))
    before = stored_items()
    told = len(mailoutbox)

    response = client.post(link_in(mailoutbox[0]))

    assert response.status_code == 302
    assert stored_items() == before
    assert len(mailoutbox) == told


def test_the_link_works_for_who_is_signed_in_nowhere(
    client: Client, ann: User, mailoutbox: list[Any]
) -> None:
    ask(client)
    visitor = Client()

    response = visitor.post(link_in(mailoutbox[0]))

    assert (response.status_code, response["Location"]) == (302, "/accounts/login/")
    assert again(ann).email == NEW
    assert signed_in_as(visitor) is None


def test_the_link_followed_in_anothers_browser_changes_the_account_that_it_names(
    client: Client, ann: User, mailoutbox: list[Any]
) -> None:
    ask(client)
    bob, browser = make_user(), Client()
    sign_in(browser, bob)

    response = browser.post(link_in(mailoutbox[0]))

    assert response["Location"] == "/accounts/login/"
    assert (again(ann).email, again(bob).email) == (NEW, bob.email)


def test_a_look_at_the_link_without_following_it_does_nothing(client: Client, ann: User) -> None:
    ask(client)
    before = stored_items()

    link = f"/accounts/email/confirm/{token_of(again(ann))}/"
    assert client.head(link).status_code == 200
    assert "Change my email address" in Page(client.get(link)).text
    assert stored_items() == before


@pytest.mark.parametrize("token", ["x", "x:y:z", "W10:1uX:abc"])
def test_a_link_that_is_not_ours_has_a_friendly_page(client: Client, ann: User, token: str) -> None:
    response = client.post(f"/accounts/email/confirm/{token}/")

    assert response.status_code == 410
    assert "This link was already used, is too old" in Page(response).text


def test_a_link_whose_address_was_taken_since_it_lapsed_says_so(client: Client, ann: User) -> None:
    ask(client)
    link = f"/accounts/email/confirm/{token_of(again(ann))}/"
    with days_later():
        make_user(email=NEW)

    response = client.post(link)

    assert response.status_code == 409
    assert "Another account has taken this in the meantime: Email" in Page(response).text
    assert again(ann).email == OLD


def test_a_link_for_a_deleted_account_has_a_friendly_page(
    client: Client, ann: User, mailoutbox: list[Any]
) -> None:
    ask(client)
    delete(again(ann))

    assert client.post(link_in(mailoutbox[0])).status_code == 410
    assert [mail.to for mail in mailoutbox] == [[NEW]]


def test_a_lapsed_change_is_not_shown(client: Client, ann: User) -> None:
    ask(client)

    with days_later():
        text = Page(client.get(PROFILE)).text

    assert "Cancel this change" not in text
    assert NEW not in text


def test_the_button_cancels_the_change(client: Client, ann: User, mailoutbox: list[Any]) -> None:
    ask(client)
    client.get(PROFILE)

    response = client.post(CANCEL)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    page = Page(client.get(PROFILE))
    assert page.messages == ["The change was canceled. Your email address stays the same."]
    assert "Cancel this change" not in page.text
    assert guard_owner(NEW_KEY) is None
    assert client.post(link_in(mailoutbox[0])).status_code == 410
    assert_guards_match_users()


def test_the_button_asks_for_a_token_a_post_and_an_account(client: Client, ann: User) -> None:
    ask(client)
    careful = Client(enforce_csrf_checks=True)
    careful.cookies = client.cookies

    assert careful.post(CANCEL).status_code == 403
    assert client.get(CANCEL).status_code == 405
    assert Client().post(CANCEL)["Location"].startswith("/accounts/login/")
    assert again(ann).awaited_email == NEW


def test_a_newer_request_replaces_the_change_that_waits(
    client: Client, ann: User, mailoutbox: list[Any]
) -> None:
    ask(client)
    ask(client, "third@example.org")

    assert [mail.to for mail in mailoutbox] == [[NEW], ["third@example.org"]]
    assert client.post(link_in(mailoutbox[0])).status_code == 410
    assert client.post(link_in(mailoutbox[1])).status_code == 302
    assert again(ann).email == "third@example.org"


def test_an_address_that_another_has_is_refused_at_its_field(
    client: Client, ann: User, mailoutbox: list[Any]
) -> None:
    make_user(email=NEW)

    page = Page(ask(client))

    assert page.errors == {"email": ["This email address belongs to another account."]}
    assert mailoutbox == []


def test_a_wrong_password_reserves_nothing(client: Client, ann: User) -> None:
    before = stored_items()

    response = client.post(EMAIL, {"email": NEW, "password": "wrong"})

    assert Page(response).errors == {"password": ["This is not your password."]}
    assert stored_items() == before


def test_another_spelling_waits_for_nothing(
    client: Client, ann: User, mailoutbox: list[Any]
) -> None:
    ask(client)

    ask(client, "ann@example.org")

    read = again(ann)
    assert (read.email, read.awaited_email) == ("ann@example.org", None)
    assert [mail.to for mail in mailoutbox] == [[NEW]]
    assert_guards_match_users()


def test_a_mail_that_cannot_be_sent_is_said_and_can_be_asked_for_again(
    client: Client, ann: User, settings: Any, mailoutbox: list[Any]
) -> None:
    backend = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    ask(client)
    settings.EMAIL_BACKEND = backend

    page = Page(client.get(PROFILE))
    assert "The mail could not be sent. Please request the change again later." in page.messages

    ask(client)
    assert client.post(link_in(mailoutbox[0])).status_code == 302
    assert again(ann).email == NEW


def test_with_the_immediate_setting_the_address_changes_at_once_and_the_form_does_not_wait(
    client: Client, ann: User, settings: Any, mailoutbox: list[Any]
) -> None:
    ask(client)
    settings.ACCOUNTS_EMAIL_CHANGE = "immediate"
    assert "when you follow it" not in Page(client.get(EMAIL)).text

    ask(client)

    read = again(ann)
    assert (read.email, read.awaited_email, read.is_confirmed) == (NEW, None, False)
    assert [mail.to for mail in mailoutbox] == [[NEW], [OLD], [NEW]]
    assert client.post(link_in(mailoutbox[0])).status_code == 410
    assert_guards_match_users()
