"""The language of pages and mails: of the profile, the switch or the browser; and the time zone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone, translation

from accounts.emails import mails
from accounts.emails.links import request_change
from accounts.emails.mails import send_reminder, send_reset
from accounts.models import User
from accounts.services import edit_profile
from tests.factories import make_user, set_stored, stored_user
from tests.mailbox import link
from tests.pages import PROFILE, SIGN_IN, Page, form_values, meanwhile, sign_in, sign_up
from tests.requests import OF_EVERY_PAGE, Requests

pytestmark = pytest.mark.usefixtures("changes_at_once", "ann_is_signed_in")

SWITCH = "/i18n/setlang/"
JAPANESE = {"accept-language": "ja"}
COOKIE = "django_language"


def language_of(response: Any) -> str:
    """The language of a page, by its header and its markup. Errors may have pages of Django."""
    language = str(response["Content-Language"])
    assert response.status_code >= 400 or f'<html lang="{language}"' in response.content.decode()
    return language


def chosen(user: User) -> str | None:
    return User.get(user.pk).language


def test_a_visitor_gets_the_language_that_the_browser_prefers() -> None:
    for asked, language in (
        *((text, "ja") for text in ("ja", "ja-JP,ja;q=0.9,en;q=0.5", "fr,ja;q=0.5")),
        *((text, "en") for text in ("", "en-GB,ja", "fr", "*", ";;,q=")),
    ):
        response = Client().get("/", headers={"accept-language": asked})

        assert language_of(response) == language
        assert COOKIE not in response.cookies
        assert {"Accept-Language", "Cookie"} <= set(response["Vary"].split(", "))


def test_the_language_is_that_of_the_profile_or_the_switch_or_the_browser_and_costs_no_request(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    for stored, switched, browser, shown in (
        ("ja", "en", "en", "ja"),
        (None, "en", "ja", "en"),
        (None, "ja", "en", "ja"),
        # The site does not have this language, or not any more.
        (None, "xx", "ja", "ja"),
        ("fr", "xx", "ja", "ja"),
    ):
        set_stored(User.get(ann.pk), language=stored)
        client.cookies[COOKIE] = switched
        requests_sent.clear()

        response = client.get(PROFILE, headers={"accept-language": browser})

        assert language_of(response) == shown
        assert requests_sent.operations == OF_EVERY_PAGE


@pytest.mark.site
def test_the_switch_returns_to_its_page() -> None:
    for page in ("/", "/accounts/login/?next=/invoices/", "/accounts/signup/"):
        action = Client().get(page).content.decode().partition('class="languages"')[2]
        url = action.partition('action="')[2].partition('"')[0]
        visitor = Client()
        assert visitor.post(url, {"language": "ja"})["Location"] == page
        assert language_of(visitor.get(page)) == "ja"


def test_the_switch_ignores_a_language_that_the_site_does_not_have(
    client: Client, ann: User
) -> None:
    for language in ("fr", "xx", ""):
        for visitor in (Client(), client):
            response = visitor.post(SWITCH, {"language": language})
            assert (response.status_code, COOKIE in response.cookies) == (302, False)
    assert chosen(ann) is None


def test_the_switch_changes_the_profile_of_a_signed_in_user(client: Client, ann: User) -> None:
    client.post(SWITCH, {"language": "ja"})

    assert chosen(ann) == "ja"
    assert language_of(client.get("/")) == "ja"
    elsewhere = Client()
    sign_in(elsewhere, ann)
    assert language_of(elsewhere.get("/")) == "ja"
    # Neither page reads the account, so the cookie must have its language.
    assert language_of(elsewhere.get("/nothing/")) == "ja"
    elsewhere.post("/accounts/logout/")
    assert language_of(elsewhere.get(SIGN_IN)) == "ja"


def test_the_switch_shows_a_message_if_the_account_changed_meanwhile(
    engine: str, client: Client, ann: User
) -> None:
    client.get("/")

    def change() -> None:
        edit_profile(User.get(ann.pk), full_name="Ann Example")

    with meanwhile(engine, "UpdateItem", change):
        client.post(SWITCH, {"language": "ja"})

    assert chosen(ann) is None
    assert Page(client.get("/")).messages


def test_a_language_chosen_in_the_profile_is_used_at_once_and_without_one_the_browser_decides(
    client: Client, ann: User
) -> None:
    client.post(PROFILE, form_values(client, PROFILE, language="ja"))

    page = client.get(PROFILE)
    assert (chosen(ann), language_of(page)) == ("ja", "ja")
    assert Page(page).messages == ["登録情報を保存しました。"]
    assert '<option value="ja" selected lang="ja">日本語</option>' in page.content.decode()

    client.post(PROFILE, {"language": ""})

    assert "language" not in (stored_user(ann.pk) or {})
    page = client.get(PROFILE)
    assert language_of(page) == "en"
    assert Page(page).messages == ["Your details were saved."]


def test_a_profile_saved_without_a_change_of_language_keeps_the_switch(
    client: Client, ann: User
) -> None:
    client.cookies[COOKIE] = "ja"

    client.post(PROFILE, {"language": ""})

    assert language_of(client.get(PROFILE)) == "ja"


def test_the_language_of_a_request_does_not_leak_into_the_next_request_of_its_thread() -> None:
    before = translation.get_language()

    assert language_of(Client().get("/", headers=JAPANESE)) == "ja"

    assert translation.get_language() == before
    assert language_of(Client().get("/")) == "en"


def test_a_request_that_is_refused_before_it_is_read_gets_the_language_of_the_browser() -> None:
    for asked in ("ja", "en"):
        response = Client(raise_request_exception=False).post(
            "/accounts/login/",
            b"a=b",
            content_type="application/x-www-form-urlencoded; charset=utf-16",
            headers={"accept-language": asked},
        )
        assert (response.status_code, language_of(response)) == (400, asked)


def test_a_response_without_text_names_no_language(engine: str) -> None:
    response = Client().get("/healthz", headers=JAPANESE)

    assert response.status_code == 200
    assert "Content-Language" not in response
    assert "Accept-Language" not in response.get("Vary", "")


@pytest.mark.parametrize(
    ("zone", "stored", "hidden"),
    [
        *((zone, None, False) for zone in ("", "../x")),
        *(("Asia/Tokyo", "Asia/Tokyo", hidden) for hidden in (False, True)),
    ],
)
def test_a_new_account_gets_the_zone_of_the_browser(
    engine: str, client: Client, settings: Any, zone: str, stored: str | None, hidden: bool
) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = hidden

    assert sign_up(client, time_zone=zone).status_code == 302
    if hidden:
        client.post(link())

    assert User.named("ann").time_zone == stored


def test_every_time_is_local_and_names_its_zone(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 11, 23, 20, tzinfo=UTC))
    edit_profile(User.get(ann.pk), time_zone="Asia/Tokyo")

    for page in ("/accounts/sessions/", "/accounts/profile/"):
        text = Page(client.get(page)).text
        assert " UTC" not in text
        assert " JST" in text
    # What the middleware activates ends with the request.
    assert timezone.get_current_timezone_name() == "UTC"
    edit_profile(User.get(ann.pk), time_zone="")
    assert " UTC" in Page(client.get("/accounts/sessions/")).text


@pytest.mark.usefixtures("engine")
def test_a_mail_has_the_language_of_its_account_or_else_that_of_the_page() -> None:
    user = make_user(username="ann", email="ann@example.org", email_confirmed=True)
    other = make_user()
    for each in (user, other):
        edit_profile(each, language="ja")
    request_change(user, "new@example.org")

    mails.send_confirmation(other)
    mails.send_email_change(user)
    send_reset(user.email)
    send_reminder(user.email)
    for email in (make_user().email, "nobody@example.org"):
        Client().post("/accounts/username_reminder/", {"email": email}, headers=JAPANESE)

    assert len(mail.outbox) == 6
    assert all("【Dynamo Ledger】" in message.subject for message in mail.outbox)
