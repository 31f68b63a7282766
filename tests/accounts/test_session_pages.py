"""Sessions over HTTP: their page, what ends them, the password again, the account cookie."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest
from django.http import HttpRequest
from django.test import Client

from accounts.models import User
from accounts.services import delete
from accounts.sessions import services as sessions, visitor
from accounts.sessions.middleware import AuthenticationMiddleware
from dynamo.sessions import SessionStore
from tests.accounts.test_clients import LINUX_FIREFOX
from tests.factories import PASSWORD, make_user, set_stored, stored_items, stored_user
from tests.faults.kinds import Answer, Reply
from tests.faults.proxy import FaultProxy
from tests.pages import (
    PROFILE,
    SIGN_IN,
    Page,
    meanwhile,
    shown_user,
    sign_in,
    signed_in_as,
    stored_sessions,
)
from tests.requests import OF_EVERY_PAGE, Requests
from tests.session_maps import begun, forget_password_check, let_pass, only, stored_ids

URL = "/accounts/sessions/"
END = "/accounts/sessions/end/"
END_OTHERS = "/accounts/sessions/end_others/"
ASKING = "/accounts/reauthenticate/"
EXPORT = "/accounts/export/"
PASSWORD_CHANGE = "/accounts/password_change/"
NEW = {"new_password1": "quite another", "new_password2": "quite another"}


@pytest.fixture
def here(client: Client, ann: User) -> str:
    """The id of the session in which `client` is signed in."""
    sign_in(client, ann)
    return only(ann).id


# The page -----------------------------------------------------------------------------------------


def test_the_page_lists_the_sessions_and_marks_this_one(
    client: Client, ann: User, here: str
) -> None:
    assert f'href="{URL}"' in client.get(PROFILE).content.decode()
    alone = client.get(URL).content.decode()
    assert END not in alone
    assert END_OTHERS not in alone
    begun(ann, browser=LINUX_FIREFOX, address="192.0.2.7")

    response = client.get(URL)

    page = Page(response)
    assert "Firefox on Linux" in page.text
    assert "192.0.2.7" in page.text
    assert page.text.count("This session") == 1
    assert response.content.count(b'name="session"') == 1
    assert response["Cache-Control"].count("no-store") == 1
    assert "Gecko" not in response.content.decode()
    assert client.cookies["sessionid"].value not in response.content.decode()


def test_ending_a_session_signs_it_out_at_once(client: Client, ann: User, here: str) -> None:
    other = Client()
    sign_in(other, ann)
    cookie = other.cookies["sessionid"].value
    [ending] = stored_ids(ann) - {here}
    third = begun(ann)

    response = client.post(END, {"session": ending}, follow=True)

    assert Page(response).messages == ["The session is ended."]
    assert stored_ids(ann) == {here, third}
    refused = other.get(PROFILE)
    assert (refused.status_code, refused["Location"]) == (302, f"{SIGN_IN}?next={PROFILE}")
    assert [refused.cookies[name].value for name in ("sessionid", "account")] == ["", ""]
    assert len(stored_sessions()) == 1
    other.cookies["sessionid"] = cookie
    assert signed_in_as(other) is None
    assert signed_in_as(client) == "ann"


@pytest.mark.parametrize("url", [END, "/accounts/logout/"])
@pytest.mark.parametrize(("after", "shown"), [("home", "/"), (None, SIGN_IN)])
def test_ending_the_own_session_signs_out(
    client: Client, ann: User, here: str, settings: Any, url: str, after: str | None, shown: str
) -> None:
    settings.LOGOUT_REDIRECT_URL = after

    response = client.post(url, {"session": here})

    assert (response.status_code, response["Location"]) == (302, shown)
    assert signed_in_as(client) is None
    assert stored_ids(ann) == set()
    assert stored_sessions() == []


def test_ending_an_unknown_session_changes_nothing(client: Client, ann: User, here: str) -> None:
    of_another_account = begun(make_user())
    before = stored_items()

    for ended in (of_another_account, "", "x" * 5000, "a\0b"):
        response = client.post(END, {"session": ended})
        assert (response.status_code, response["Location"]) == (302, URL)
    assert stored_items() == before


# Signing in ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_is", ["same", "other", "deleted"])
def test_a_sign_in_replaces_the_session_of_the_browser(
    client: Client, ann: User, here: str, first_is: str
) -> None:
    key = client.cookies["sessionid"].value
    if first_is == "deleted":
        delete(User.get(ann.pk))
    second = ann if first_is == "same" else make_user(username="Bob")

    sign_in(client, second)

    assert signed_in_as(client) == second.username
    assert client.cookies["sessionid"].value != key
    assert len(stored_ids(second) - {here}) == 1
    assert here not in stored_ids(ann)
    assert (stored_user(ann.pk) is None) == (first_is == "deleted")


def test_a_lapsed_session_must_sign_in_again(client: Client, ann: User, here: str) -> None:
    let_pass(ann, here, "expiresAt", 14 * 24 * 3600)

    response = client.get(PROFILE)

    assert (response.status_code, response["Location"]) == (302, f"{SIGN_IN}?next={PROFILE}")
    assert stored_sessions() == []


def test_a_session_ended_during_a_request_does_not_end_others(
    engine: str, client: Client, ann: User, here: str
) -> None:
    other = begun(ann)

    with meanwhile(engine, "UpdateItem", lambda: sessions.end(User.get(ann.pk), here)):
        response = client.post(END_OTHERS, follow=True)

    assert response.redirect_chain[-1][0].startswith(SIGN_IN)
    assert stored_ids(ann) == {other}


# Pages that ask for the password again ------------------------------------------------------------


def test_an_older_sign_in_must_enter_the_password_and_returns_to_the_page(
    client: Client, ann: User, here: str
) -> None:
    page = f"{URL}?a=b&c=%26"
    forget_password_check(client)
    asked = client.get(page)
    assert (asked.status_code, asked["Location"]) == (302, f"{ASKING}?next={quote(page)}")
    shown = Page(client.get(asked["Location"]))

    response = client.post(ASKING, {"password": PASSWORD, "next": shown.value("next")})

    assert (response.status_code, response["Location"]) == (302, page)
    assert client.get(page).status_code == 200


def test_a_form_of_an_older_sign_in_changes_nothing_and_returns_to_its_page(
    client: Client, ann: User, here: str
) -> None:
    forget_password_check(client)
    other = begun(ann)
    before = stored_items()

    for page in (END, END_OTHERS):
        response = client.post(page, {"session": other})
        assert (response.status_code, response["Location"]) == (302, f"{ASKING}?next={URL}")
        of_a_visitor = Client().post(page, {"session": other})
        assert of_a_visitor["Location"] == f"/accounts/login/?next={URL}"
    assert stored_items() == before


def test_a_password_is_fresh_for_five_minutes_in_its_session_and_this_costs_one_write(
    client: Client, ann: User, here: str, requests_sent: Requests
) -> None:
    assert visitor.FRESH_SECONDS == 300
    for seconds, status in ((0, 200), (290, 200), (301, 302), (-60, 302), (10**9, 302)):
        forget_password_check(client, seconds)
        assert client.get(URL).status_code == status
    other = Client()
    sign_in(other, ann)
    assert other.get(URL).status_code == 200
    forget_password_check(other)
    requests_sent.clear()

    client.post(ASKING, {"password": PASSWORD})

    others, _of_limits = requests_sent.apart()
    assert others == [*OF_EVERY_PAGE, "PutItem"]
    assert [item.get(URL).status_code for item in (client, other)] == [200, 302]


def test_a_page_records_every_five_minutes_that_its_session_was_seen_and_is_shown_if_that_fails(
    proxy: FaultProxy, client: Client, ann: User, here: str, requests_sent: Requests
) -> None:
    let_pass(ann, here, "seenAt", sessions.SEEN_EVERY_SECONDS)
    requests_sent.clear()

    client.get(PROFILE, REMOTE_ADDR="192.0.2.9")
    client.get(PROFILE)

    assert requests_sent.operations == [*OF_EVERY_PAGE, "UpdateItem", *OF_EVERY_PAGE]
    assert only(ann).address == "192.0.2.9"
    let_pass(ann, here, "seenAt", 3600)
    proxy.forget()
    proxy.plan("UpdateItem", Answer(400, "ThrottlingException"), times=1_000)
    assert client.get(PROFILE).status_code == 200
    assert proxy.count("UpdateItem") > 0


def test_asynchronous_views_have_the_same_user(client: Client, ann: User, here: str) -> None:
    request = HttpRequest()
    request.session = client.session
    AuthenticationMiddleware(lambda _request: None).process_request(request)  # type: ignore[arg-type, return-value]
    assert asyncio.run(request.auser()) == request.user == ann  # type: ignore[attr-defined]


# The account cookie: session and account are read in one request ----------------------------------


@pytest.fixture
def signed_in(client: Client, ann: User) -> Client:
    sign_in(client, ann)
    return client


def cookie_of(client: Client) -> str:
    value: str = client.cookies["account"].value
    return value


@pytest.mark.parametrize(
    ("remember", "seconds"), [({}, ""), ({"remember_me": "on"}, 14 * 24 * 3600)]
)
def test_both_cookies_last_two_weeks_if_asked_for_or_else_until_the_browser_closes(
    client: Client, ann: User, settings: Any, remember: dict[str, str], seconds: int | str
) -> None:
    settings.SESSION_COOKIE_SECURE = True
    typed = {"username": "ann", "password": PASSWORD} | remember

    cookies = client.post(SIGN_IN, typed).cookies

    assert cookies["account"].value.startswith(f"{ann.pk}:")
    assert cookies["sessionid"].value not in cookies["account"].value
    ours = dict(cookies["account"])
    session = dict(cookies["sessionid"])
    del ours["expires"], session["expires"]
    assert ours == session
    assert (ours["httponly"], ours["secure"], ours["samesite"]) == (True, True, "Lax")
    assert ours["max-age"] == seconds
    later = client.post(PASSWORD_CHANGE, {"old_password": PASSWORD} | NEW).cookies
    assert [later[name]["max-age"] for name in ("account", "sessionid")] == [seconds] * 2


def cookie_of_another(user: User) -> str:
    """The cookie of another session of `user`."""
    other = Client()
    sign_in(other, user)
    return cookie_of(other)


def test_a_page_with_an_invalid_account_cookie_is_the_same_and_renews_it(
    signed_in: Client, requests_sent: Requests
) -> None:
    right = cookie_of(signed_in)
    unsigned, of_another_name = right.partition(":")[0], "userName#ann" + right[36:]
    of_others = [cookie_of_another(User.named("ann")), cookie_of_another(make_user())]

    for wrong in (None, "", unsigned, of_another_name, right[:-1] + "!", "x:" * 2_000, *of_others):
        if wrong is None:
            del signed_in.cookies["account"]
        else:
            signed_in.cookies["account"] = wrong
        requests_sent.clear()

        response = signed_in.get(PROFILE)

        assert shown_user(response) == "ann"
        assert requests_sent.operations == ["GetItem", "GetItem"]
        assert response.cookies["account"].value == right
    requests_sent.clear()
    assert "account" not in signed_in.get(PROFILE).cookies
    assert requests_sent.operations == OF_EVERY_PAGE


def test_without_a_session_the_cookie_reads_nothing_and_signs_nobody_in(
    signed_in: Client, requests_sent: Requests
) -> None:
    del signed_in.cookies["sessionid"]
    requests_sent.clear()

    response = signed_in.get(PROFILE)

    assert response.status_code == 302
    assert requests_sent.operations == []


def test_a_session_of_an_account_that_another_program_deactivated_is_refused(
    signed_in: Client, ann: User
) -> None:
    # Without ending its sessions.
    set_stored(User.get(ann.pk), isActive={"BOOL": False})

    assert signed_in_as(signed_in) is None


def test_a_backend_that_was_removed_signs_nobody_in(signed_in: Client, settings: Any) -> None:
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]

    assert signed_in_as(signed_in) is None


def test_an_account_read_just_before_its_new_session_was_stored_does_not_end_the_session(
    signed_in: Client, ann: User, proxy: FaultProxy
) -> None:
    """One request reads both, but not at one instant: another page may write both in between."""
    read = User.get(ann.pk)
    user = User.get(ann.pk)
    [session] = sessions.active_sessions(user)
    user.session_id = session.id
    sessions.end_others(user)
    store = SessionStore(signed_in.cookies["sessionid"].value)
    store["_auth_user_hash"] = user.get_session_auth_hash()
    store.save()

    found = {"users": [read.stored], "cache": stored_sessions()}
    proxy.plan("BatchGetItem", Reply(lambda _request: {"Responses": found}))

    assert shown_user(signed_in.get(PROFILE)) == "ann"

    assert proxy.count("BatchGetItem") == 1
    assert len(stored_sessions()) == 1
