"""The cookie that names the account: session and account are read in one request."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.sessions import services as sessions
from dynamo.sessions import SessionStore
from tests.factories import PASSWORD, change_password, make_user, set_stored
from tests.faults.kinds import Reply
from tests.faults.proxy import FaultProxy
from tests.pages import shown_user, sign_in, signed_in_as, stored_sessions
from tests.requests import OF_EVERY_PAGE, Requests

PROFILE = "/accounts/profile/"


@pytest.fixture
def signed_in(client: Client, ann: User) -> Client:
    sign_in(client, ann)
    return client


def cookie_of(client: Client) -> str:
    value: str = client.cookies["account"].value
    return value


@pytest.mark.parametrize("remember", [{}, {"remember_me": "on"}], ids=["short", "remembered"])
def test_the_cookie_has_the_account_and_the_flags_and_age_of_the_session_s_cookie(
    client: Client, ann: User, settings: Any, remember: dict[str, str]
) -> None:
    settings.SESSION_COOKIE_SECURE = True
    settings.SESSION_EXPIRE_AT_BROWSER_CLOSE = True
    typed = {"username": "ann", "password": PASSWORD} | remember

    cookies = client.post("/accounts/login/", typed).cookies

    assert cookies["account"].value.startswith(f"{ann.pk}:")
    assert cookies["sessionid"].value not in cookies["account"].value
    ours, session = dict(cookies["account"]), dict(cookies["sessionid"])
    del ours["expires"], session["expires"]
    assert ours == session
    assert (ours["httponly"], ours["secure"], ours["samesite"]) == (True, True, "Lax")
    assert bool(ours["max-age"]) == bool(remember)


def cookie_of_another(user: User) -> str:
    """The cookie of another session of `user`."""
    other = Client()
    sign_in(other, user)
    return cookie_of(other)


def test_a_page_with_a_useless_cookie_is_the_same_and_renews_it(
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


def change(ann: User) -> None:
    change_password(ann, "another good password")


def deactivate_elsewhere(ann: User) -> None:
    """As another program might, without an end of the sessions."""
    set_stored(ann, isActive={"BOOL": False})


@pytest.mark.parametrize("end", [change, deactivate_elsewhere])
def test_a_session_that_was_ended_elsewhere_is_over_in_spite_of_the_cookie(
    signed_in: Client, ann: User, end: Callable[[User], None]
) -> None:
    end(User.get(ann.pk))

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
    [session] = sessions.alive(user)
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
