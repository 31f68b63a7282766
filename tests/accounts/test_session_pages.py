"""Sessions over HTTP: the page that lists them, what ends them, and what they cost a page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.tokens import default_token_generator
from django.http import HttpRequest
from django.test import AsyncClient, Client
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts.models import User
from accounts.services import activate, deactivate, delete
from accounts.sessions import services as sessions
from accounts.sessions.middleware import AuthenticationMiddleware
from tests.commands import run
from tests.factories import PASSWORD, make_user, stored_items, stored_user
from tests.faults.kinds import Answer, Meanwhile
from tests.faults.proxy import FaultProxy, through
from tests.pages import Page, meanwhile, sign_in, signed_in_as, stored_sessions
from tests.requests import Requests
from tests.session_maps import begun, let_pass, only, stored_ids

URL = "/accounts/sessions/"
END = "/accounts/sessions/end/"
END_OTHERS = "/accounts/sessions/end_others/"
PROFILE = "/accounts/profile/"
SIGN_IN = "/accounts/login/"
LINUX_FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
NEW = {"new_password1": "quite another", "new_password2": "quite another"}


@pytest.fixture
def ann(engine: str) -> User:
    return make_user(username="Ann", email="ann@example.org")


@pytest.fixture
def here(client: Client, ann: User) -> str:
    """The id of the session in which `client` is signed in."""
    sign_in(client, ann)
    return only(ann).id


# The page ---------------------------------------------------------------------------------------


def test_the_page_lists_the_sessions_and_marks_this_one(
    client: Client, ann: User, here: str
) -> None:
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


def test_the_profile_leads_to_the_page(client: Client, here: str) -> None:
    assert f'href="{URL}"' in client.get(PROFILE).content.decode()


def test_who_is_signed_in_only_here_is_offered_nothing_to_end(client: Client, here: str) -> None:
    content = client.get(URL).content.decode()

    assert END not in content
    assert END_OTHERS not in content


def test_a_browser_that_says_markup_writes_none(client: Client, ann: User, here: str) -> None:
    begun(ann, browser="<script>alert(1)</script> Firefox/1", address="<b>")

    content = client.get(URL).content.decode()

    assert "<script" not in content
    assert "<b>" not in content


def test_ending_a_session_signs_it_out_at_once(client: Client, ann: User, here: str) -> None:
    other = Client()
    sign_in(other, ann)
    [ending] = stored_ids(ann) - {here}

    response = client.post(END, {"session": ending}, follow=True)

    assert Page(response).messages == ["The session is ended."]
    assert stored_ids(ann) == {here}
    refused = other.get(PROFILE)
    assert (refused.status_code, refused["Location"]) == (302, f"{SIGN_IN}?next={PROFILE}")
    assert refused.cookies["sessionid"].value == ""
    assert len(stored_sessions()) == 1
    assert signed_in_as(client) == "Ann"


def test_an_ended_session_cannot_be_used_again_with_its_cookie(
    client: Client, ann: User, here: str
) -> None:
    cookie = client.cookies["sessionid"].value
    sessions.end(User.get(ann.pk), here)
    client.get("/")
    client.cookies["sessionid"] = cookie

    assert signed_in_as(client) is None


def test_ending_all_others_leaves_this_one(client: Client, ann: User, here: str) -> None:
    others = [Client(), Client()]
    for other in others:
        sign_in(other, ann)

    response = client.post(END_OTHERS, follow=True)

    assert Page(response).messages == ["All your other sessions have ended."]
    assert stored_ids(ann) == {here}
    assert [signed_in_as(each) for each in (client, *others)] == ["Ann", None, None]


def test_ending_ones_own_session_is_signing_out(client: Client, ann: User, here: str) -> None:
    response = client.post(END, {"session": here})

    assert (response.status_code, response["Location"]) == (302, "/")
    assert signed_in_as(client) is None
    assert stored_ids(ann) == set()
    assert stored_sessions() == []


@pytest.mark.parametrize("ended", ["", "unknown", "x" * 5000, "a\0b", "ü"])
def test_to_end_what_is_none_changes_nothing(
    client: Client, ann: User, here: str, ended: str
) -> None:
    before = stored_items()

    response = client.post(END, {"session": ended})

    assert (response.status_code, response["Location"]) == (302, URL)
    assert stored_items() == before


def test_nobody_ends_the_session_of_another_account(client: Client, here: str) -> None:
    bob = make_user()
    ending = begun(bob)

    client.post(END, {"session": ending})

    assert stored_ids(bob) == {ending}


@pytest.mark.parametrize("page", [END, END_OTHERS])
def test_what_ends_sessions_is_sent_by_post_with_a_token(ann: User, page: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.get(ann.pk))
    begun(ann)

    assert client.get(page).status_code == 405
    assert client.post(page, {"session": "x"}).status_code == 403
    assert len(stored_ids(ann)) == 2


# Signing in and out -----------------------------------------------------------------------------


def test_signing_out_removes_the_entry(client: Client, ann: User, here: str) -> None:
    client.post("/accounts/logout/")

    assert stored_ids(ann) == set()


def test_who_signs_in_again_has_a_new_key_and_one_entry(
    client: Client, ann: User, here: str
) -> None:
    before = client.cookies["sessionid"].value

    sign_in(client, ann)

    assert client.cookies["sessionid"].value != before
    assert len(stored_sessions()) == 1
    assert only(ann).id != here
    assert signed_in_as(client) == "Ann"


def test_a_sign_in_as_another_ends_the_session_of_the_first(
    client: Client, ann: User, here: str
) -> None:
    bob = make_user(username="Bob")

    sign_in(client, bob)

    assert signed_in_as(client) == "Bob"
    assert stored_ids(ann) == set()
    assert len(stored_ids(bob)) == 1


def test_a_sign_in_as_another_after_the_first_was_deleted(
    client: Client, ann: User, here: str
) -> None:
    delete(User.get(ann.pk))

    sign_in(client, make_user(username="Bob"))

    assert signed_in_as(client) == "Bob"
    assert stored_user(ann.pk) is None


def test_the_21st_sign_in_signs_the_first_out(client: Client, ann: User, here: str) -> None:
    let_pass(ann, here, "seenAt", 60)
    for _ in range(sessions.MOST):
        begun(ann)

    assert signed_in_as(client) is None


def test_a_session_of_before_sessions_had_ids_is_asked_to_sign_in_again(
    client: Client, ann: User, here: str
) -> None:
    session = client.session
    del session["accounts.session"]
    session.save()

    response = client.get(PROFILE)

    assert (response.status_code, response["Location"]) == (302, f"{SIGN_IN}?next={PROFILE}")
    assert stored_sessions() == []


def test_a_lapsed_session_is_asked_to_sign_in_again(client: Client, ann: User, here: str) -> None:
    let_pass(ann, here, "expiresAt", 14 * 24 * 3600)

    assert client.get(PROFILE).status_code == 302


def test_the_cookie_ends_with_the_browser(client: Client, ann: User, here: str) -> None:
    cookie = client.cookies["sessionid"]

    assert (cookie["max-age"], cookie["expires"]) == ("", "")


def test_who_asks_to_be_remembered_is_for_two_weeks(client: Client, ann: User) -> None:
    client.post(SIGN_IN, {"username": "ann", "password": PASSWORD, "remember_me": "on"})

    assert client.cookies["sessionid"]["max-age"] == 14 * 24 * 3600


def test_who_is_remembered_stays_so_with_another_password(client: Client, ann: User) -> None:
    client.post(SIGN_IN, {"username": "ann", "password": PASSWORD, "remember_me": "on"})

    client.post("/accounts/password_change/", {"old_password": PASSWORD} | NEW)

    assert client.cookies["sessionid"]["max-age"] == 14 * 24 * 3600


def test_the_next_sign_in_in_the_same_browser_is_remembered_only_if_asked(
    client: Client, ann: User
) -> None:
    client.post(SIGN_IN, {"username": "ann", "password": PASSWORD, "remember_me": "on"})

    sign_in(client, ann)

    assert client.cookies["sessionid"]["max-age"] == ""


# What ends sessions -----------------------------------------------------------------------------


def change_on_the_page(client: Client, ann: User) -> None:
    client.post("/accounts/password_change/", {"old_password": PASSWORD} | NEW)


def reset_by_mail(_client: Client, ann: User) -> None:
    visitor = Client()
    uid = urlsafe_base64_encode(force_bytes(ann.pk))
    token = default_token_generator.make_token(User.get(ann.pk))
    form = visitor.get(f"/accounts/reset/{uid}/{token}/", follow=True)
    assert visitor.post(form.request["PATH_INFO"], NEW).status_code == 302


def change_by_command(_client: Client, ann: User) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("getpass.getpass", lambda **_prompt: NEW["new_password1"])
        _out, _err, code = run("changepassword", "Ann")
    assert code == 0


@pytest.mark.parametrize(
    ("change", "stays"),
    [(change_on_the_page, True), (reset_by_mail, False), (change_by_command, False)],
)
def test_another_password_ends_the_sessions_elsewhere(
    client: Client, ann: User, here: str, change: Callable[[Client, User], None], stays: bool
) -> None:
    other = Client()
    sign_in(other, ann)

    change(client, ann)

    assert User.get(ann.pk).check_password(NEW["new_password1"])
    assert stored_ids(ann) == ({here} if stays else set())
    assert signed_in_as(client) == ("Ann" if stays else None)
    assert signed_in_as(other) is None


def test_a_session_does_not_come_back_when_its_account_is_activated_again(
    client: Client, ann: User, here: str
) -> None:
    deactivate(User.get(ann.pk))
    activate(User.get(ann.pk))

    assert signed_in_as(client) is None


@pytest.mark.parametrize(
    ("page", "values", "operation"),
    [
        (PROFILE, {"full_name": "Mallory"}, "UpdateItem"),
        (
            "/accounts/username/",
            {"username": "Mallory", "password": PASSWORD},
            "TransactWriteItems",
        ),
        ("/accounts/delete/", {"password": PASSWORD}, "TransactWriteItems"),
        ("/accounts/password_change/", {"old_password": PASSWORD} | NEW, "UpdateItem"),
    ],
)
def test_a_session_ended_while_its_owner_posts_stays_ended_and_writes_nothing(
    engine: str,
    client: Client,
    ann: User,
    here: str,
    page: str,
    values: dict[str, str],
    operation: str,
) -> None:
    begun(ann)

    def end_it() -> None:
        sessions.end(User.get(ann.pk), here)
        before.update(stored_items())

    before: dict[str, Any] = {}
    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan(operation, Meanwhile(end_it), when=lambda body: ann.pk in json.dumps(body))
        response = client.post(page, values)

    assert response.status_code == 200
    assert "was changed meanwhile" in Page(response).text
    assert stored_items() == before
    assert signed_in_as(client) is None
    assert here not in stored_ids(ann)


def test_a_session_that_its_owner_ended_elsewhere_ends_no_other(
    engine: str, client: Client, ann: User, here: str
) -> None:
    other = begun(ann)

    with meanwhile(engine, "UpdateItem", lambda: sessions.end(User.get(ann.pk), here)):
        response = client.post(END_OTHERS, follow=True)

    assert response.redirect_chain[-1][0].startswith(SIGN_IN)
    assert stored_ids(ann) == {other}


# Costs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["/", PROFILE, URL])
def test_a_page_costs_the_session_and_the_account_as_before(
    client: Client, here: str, requests_sent: Requests, page: str
) -> None:
    requests_sent.clear()

    assert client.get(page).status_code == 200

    assert requests_sent.operations == ["GetItem", "GetItem"]


def test_a_page_notes_every_five_minutes_that_its_visitor_was_seen(
    client: Client, ann: User, here: str, requests_sent: Requests
) -> None:
    let_pass(ann, here, "seenAt", sessions.SEEN_EVERY_SECONDS)
    requests_sent.clear()

    client.get("/", REMOTE_ADDR="192.0.2.9")
    client.get("/")

    assert requests_sent.operations == ["GetItem", "GetItem", "UpdateItem", "GetItem", "GetItem"]
    assert only(ann).address == "192.0.2.9"


def test_a_page_is_shown_though_that_cannot_be_noted(
    engine: str, client: Client, ann: User, here: str
) -> None:
    let_pass(ann, here, "seenAt", 3600)

    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("UpdateItem", Answer(400, "ThrottlingException"), times=1_000)
        response = client.get(PROFILE)
        assert proxy.count("UpdateItem") > 0

    assert response.status_code == 200


def test_ending_costs_one_update_and_ending_the_others_the_write_of_this_session(
    client: Client, ann: User, here: str, requests_sent: Requests
) -> None:
    ending = begun(ann)
    begun(ann)
    requests_sent.clear()

    client.post(END, {"session": ending})
    client.post(END_OTHERS)

    ended = ["GetItem", "GetItem", "UpdateItem"]
    assert requests_sent.operations == [*ended, *ended, "PutItem"]


def test_signing_out_costs_two_writes(client: Client, here: str, requests_sent: Requests) -> None:
    requests_sent.clear()

    client.post("/accounts/logout/")

    assert requests_sent.operations == ["GetItem", "GetItem", "UpdateItem", "PutItem"]


# Asynchronously ---------------------------------------------------------------------------------


def test_an_asynchronous_view_meets_the_same_user(client: Client, ann: User, here: str) -> None:
    request = HttpRequest()
    request.session = client.session
    AuthenticationMiddleware(lambda _request: None).process_request(request)  # type: ignore[arg-type, return-value]

    assert asyncio.run(request.auser()) == request.user == ann  # type: ignore[attr-defined]


def test_pages_are_served_asynchronously_as_well(client: Client, ann: User, here: str) -> None:
    visitor = AsyncClient()
    visitor.cookies = client.cookies

    response = asyncio.run(visitor.get(PROFILE))

    assert response.status_code == 200
