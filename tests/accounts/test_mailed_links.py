"""The links in mails: what holds for all that confirm, change an email address or finish a sign-up.

The links that reset a password are Django's: tests/accounts/test_recovery.py.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from accounts.emails import links
from accounts.models import User
from accounts.services import delete
from tests.factories import PASSWORD, assert_guards_match_users, make_user, stored_items
from tests.mailbox import later, link
from tests.pages import Page, sign_in, sign_up, signed_in_as

REFUSED = "This link was already used, is too old, or is incomplete."
ANN = {"username": "ann", "email": "ann@example.org"}


def ann_signed_in() -> Client:
    client = Client()
    sign_in(client, make_user(**ANN))
    return client


def confirmation_link() -> str:
    ann_signed_in().post("/accounts/confirm/send/")
    return link()


def email_change_link() -> str:
    typed = {"email": "new@example.org", "password": PASSWORD}
    ann_signed_in().post("/accounts/email/", typed)
    return link()


def sign_up_link() -> str:
    sign_up(Client(), username="ann")
    return link()


@dataclass(frozen=True)
class MailedLink:
    """A kind of link. `sent` requests one by mail and returns its path."""

    purpose: str
    sent: Callable[[], str]
    button: str
    message: str
    is_done: Callable[[User], bool]
    #: What the page of a used link says.
    used: str = ""


LINKS = [
    MailedLink(
        "confirm",
        confirmation_link,
        "Confirm my email address",
        "Your email address is confirmed.",
        lambda user: user.is_confirmed,
        "Your email address is already confirmed.",
    ),
    MailedLink(
        "email_change",
        email_change_link,
        "Change my email address",
        "Your email address was changed and confirmed.",
        lambda user: user.email == "new@example.org",
    ),
    MailedLink(
        "signup",
        sign_up_link,
        "Create my account",
        "Your account is ready. Sign in with your password.",
        lambda user: user.username == "ann",
    ),
]
each_link = pytest.mark.parametrize("kind", LINKS, ids=lambda kind: kind.purpose)


@pytest.fixture(autouse=True)
def _all_links_are_sent(engine: str, settings: Any) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = True
    settings.ACCOUNTS_EMAIL_CHANGE = "confirm"


def is_done(kind: MailedLink) -> bool:
    users = [User.from_raw_data(item) for pk, item in stored_items().items() if "#" not in pk]
    return any(map(kind.is_done, users))


def is_refused(response: Any) -> bool:
    page = Page(response)
    assert "Nothing was changed." in page.text
    return bool(response.status_code == 410 and REFUSED in page.text)


def other_token(path: str, token: str) -> str:
    """`path` with another token."""
    return f"{path.rstrip('/').rpartition('/')[0]}/{token}/"


@each_link
def test_opening_a_link_shows_a_button_and_only_pressing_it_counts_once(kind: MailedLink) -> None:
    path = kind.sent()
    visitor = Client(enforce_csrf_checks=True)
    before = stored_items()

    assert visitor.head(path).status_code == 200
    opened = visitor.get(path)

    assert opened.status_code == 200
    assert "no-store" in opened["Cache-Control"]
    page = Page(opened)
    assert kind.button in page.text
    assert ("new@" if kind.purpose == "email_change" else "ann@") + "example.org" in page.text
    assert Client().put(path).status_code == 405
    assert visitor.post(path).status_code == 403
    assert stored_items() == before
    token = page.value("csrfmiddlewaretoken")
    assert visitor.post(path, {"csrfmiddlewaretoken": token}).status_code == 302
    assert is_done(kind)
    assert_guards_match_users()

    before = stored_items()
    mail.outbox.clear()
    response = visitor.post(path, {"csrfmiddlewaretoken": token})
    assert (response.status_code, response["Location"]) == (302, "/accounts/login/")
    assert Page(visitor.get(response["Location"])).messages == [kind.message] * 2
    assert signed_in_as(visitor) is None
    used = visitor.get(path)
    assert used.status_code == 200
    told = Page(used).text
    assert "This link was already used" in told
    assert (kind.used or kind.message) in told
    assert kind.button not in told
    assert (stored_items(), mail.outbox) == (before, [])


@each_link
@pytest.mark.parametrize("is_owner", [True, False])
def test_a_link_leads_its_signed_in_owner_on_and_others_to_the_sign_in(
    kind: MailedLink, is_owner: bool
) -> None:
    path = kind.sent()
    visitor = Client()
    if kind.purpose == "signup":
        Client().post(path)
    sign_in(visitor, User.named("ann") if is_owner else make_user())

    response = visitor.post(path)

    # After a confirmation, the start page shows the next of the first steps.
    on = "/" if kind.purpose == "confirm" else "/accounts/profile/"
    assert response["Location"] == (on if is_owner else "/accounts/login/")
    assert is_done(kind)


@each_link
def test_a_link_is_valid_for_three_days(kind: MailedLink) -> None:
    path = kind.sent()

    with later(days=3, seconds=2):
        assert is_refused(Client().get(path))
        assert is_refused(Client().post(path))
        assert not is_done(kind)
    with later(days=3, seconds=-60):
        assert Client().post(path).status_code == 302
        assert Client().post(path).status_code == 302
        assert is_done(kind)


DAMAGE: list[Callable[[str], str]] = [
    lambda token: token[:-1],
    lambda token: token + "x",
    lambda token: token.swapcase(),
    lambda token: token.replace(":", "", 1),
    lambda token: ":::",
    lambda token: "%00%0d%0aX",
    lambda token: "%c3%a9%ff%ed%a0%80",
    lambda token: "a" * 3000,
]


@each_link
def test_a_damaged_link_or_one_with_other_contents_or_for_another_purpose_is_refused(
    kind: MailedLink,
) -> None:
    path = kind.sent()
    token = path.split("/")[-2]
    contents = links.read(kind.purpose, token, 1 if kind.purpose == "signup" else 2)
    before = stored_items()

    for other in (
        *(damage(token) for damage in DAMAGE),
        *(links.make(kind.purpose, *parts) for parts in ((), ("",), ("x", ""), ("a", "b", "c"))),
        *(links.make(item.purpose, *contents) for item in LINKS if item is not kind),
        links.make("", *contents),
    ):
        assert is_refused(Client().post(other_token(path, other))), other

    assert stored_items() == before


@each_link
def test_a_link_is_refused_after_its_account_was_deleted_and_logged_without_its_token(
    kind: MailedLink, caplog: pytest.LogCaptureFixture
) -> None:
    path = kind.sent()
    Client().post(path)
    delete(User.named("ann"))

    with caplog.at_level(logging.DEBUG):
        response = Client().post(path)

    assert is_refused(response)
    assert stored_items() == {}
    assert "A link was refused (BadLink)." in caplog.text
    assert path.split("/")[-2] not in caplog.text
