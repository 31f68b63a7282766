"""The sign-up page: one form makes one account, however often it is sent."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core import signing
from django.test import Client

from accounts.models import User
from accounts.services import deactivate, delete
from accounts.sessions import services as sessions
from tests.accounts.test_page_limits import let_pass
from tests.factories import PASSWORD, assert_guards_match_users, make_user, stored_items
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.pages import (
    ANN,
    SIGN_UP as URL,
    Page,
    form_values,
    request_id_drawn,
    shown_user,
    sign_in,
    signed_in_as,
    stored_sessions,
)
from tests.registration import RunTasks
from tests.requests import Requests
from tests.session_maps import stored_ids

KEPT = ["username", "email", "full_name", "phone_number"]


@pytest.fixture
def typed(engine: str, client: Client) -> dict[str, Any]:
    """The form as Ann sends it."""
    return form_values(client, URL, **ANN)


def the_account() -> User:
    """The only account."""
    (user,) = [User.from_raw_data(item) for pk, item in stored_items().items() if "#" not in pk]
    return user


def kept(page: Page) -> dict[str, str]:
    """What the page shows in the fields other than passwords and the request id."""
    return {name: page.value(name) for name in KEPT}


def test_the_form_registers_an_account_with_its_session_at_the_cost_of_both(
    client: Client, typed: dict[str, Any], requests_sent: Requests, worker: RunTasks
) -> None:
    response = client.post(URL, typed, HTTP_USER_AGENT="A browser", REMOTE_ADDR="192.0.2.7")

    assert requests_sent.apart() == (["TransactWriteItems", "PutItem"], ["PutItem", "PutItem"])
    assert (response.status_code, response["Location"]) == (302, "/")
    user = the_account()
    assert (user.username, user.email, user.full_name) == ("Ann", "ann@example.org", "Ann Example")
    assert user.phone_number == "+12025550124"
    assert user.check_password(PASSWORD)
    [session] = sessions.active_sessions(user)
    assert (session.browser, session.address) == ("A browser", "192.0.2.7")
    assert user.last_login is not None
    assert_guards_match_users()
    page = Page(client.get(response["Location"]))
    assert page.messages == [
        "Welcome! Your account is ready. We are sending a link to ann@example.org. Follow it to "
        "confirm the address."
    ]
    assert signed_in_as(client) == "Ann"


def test_a_sign_up_leads_to_the_page_that_was_asked_for_and_to_no_other_site(
    client: Client, engine: str
) -> None:
    asked = Client().get("/accounts/profile/?a=1")["Location"]
    [link] = set(re.findall(rf'href="({URL}[^"]*)"', client.get(asked).content.decode()))
    assert link == f"{URL}?next=%2Faccounts%2Fprofile%2F%3Fa%3D1"
    assert 'href="/accounts/login/?next=%2Faccounts%2Fprofile' in client.get(link).content.decode()
    refused = client.post(link, form_values(client, link, **ANN | {"email": "no"}))
    assert refused.status_code == 200

    response = client.post(link, form_values(client, link, **ANN))

    assert response["Location"] == "/accounts/profile/?a=1"
    assert client.get(link)["Location"] == "/accounts/profile/?a=1"
    for elsewhere in ("https://example.com/", "//example.com", "javascript:alert(1)"):
        assert client.get(f"{URL}?{urlencode({'next': elsewhere})}")["Location"] == "/"


def test_two_taken_values_are_errors_of_their_fields_after_one_request_and_can_be_corrected(
    client: Client, typed: dict[str, Any], requests_sent: Requests
) -> None:
    make_user(username="ann")
    make_user(email="ANN@example.org")
    before = stored_items()
    requests_sent.clear()

    response = client.post(URL, typed)

    assert requests_sent.apart() == (["TransactWriteItems"], ["PutItem", "PutItem", "UpdateItem"])
    assert response.status_code == 200
    page = Page(response)
    assert page.errors == {
        "username": ["This username is taken."],
        "email": ["This email address belongs to another account."],
    }
    assert kept(page) == {name: typed[name] for name in KEPT}
    assert page.value("request_id") == typed["request_id"]
    assert PASSWORD not in response.content.decode()
    assert page.autofocused() == ["username"]
    assert stored_items() == before
    assert signed_in_as(client) is None
    free = {"username": "ann2", "email": "ann2@example.org"}
    assert client.post(URL, typed | free).status_code == 302


def test_a_form_sent_twice_makes_one_account_and_signs_in_both_times(
    client: Client, typed: dict[str, Any]
) -> None:
    typed |= {"request_id": request_id_drawn(timedelta(hours=23, minutes=59))}
    client.post(URL, typed)

    for visitor in (client, Client()):
        for other in ({}, {"username": "ａｎｎ", "email": "ANN@Example.ORG"}):
            response = visitor.post(URL, typed | other)

            assert (response.status_code, response["Location"]) == (302, "/")
            assert signed_in_as(visitor) == the_account().username == "Ann"
            assert len(stored_items()) == 3
    # Each browser has a session of its own.
    assert len(sessions.active_sessions(the_account())) == len(stored_sessions()) == 2
    assert_guards_match_users()


def test_a_form_sent_again_with_other_contents_or_after_a_deactivation_does_not_sign_in(
    client: Client, typed: dict[str, Any]
) -> None:
    client.post(URL, typed)
    before = stored_items()
    stranger = Client()
    other = dict.fromkeys(("password1", "password2"), "another good password")

    response = stranger.post(URL, typed | other)

    assert response.status_code == 200
    page = Page(response)
    (advice,) = page.errors[""]
    assert "If that account is yours, sign in." in advice
    assert "send this form again" in advice
    assert page.value("request_id") not in {"", typed["request_id"]}
    assert kept(page) == {name: (typed | other)[name] for name in KEPT}
    assert stored_items() == before
    assert signed_in_as(stranger) is None

    deactivate(the_account())
    assert Page(stranger.post(URL, typed)).errors[""] == [advice]
    assert signed_in_as(stranger) is None


def test_passwords_of_a_form_sent_again_count_as_sign_ins_to_its_account(
    client: Client, typed: dict[str, Any], limits: dict[str, Any]
) -> None:
    limits |= {"sign_in": (3, 900), "mail": (5, 3600)}
    client.post(URL, typed)
    stranger = Client()

    def guess(password: str) -> int:
        passwords = {"password1": password, "password2": password}
        return int(stranger.post(URL, typed | passwords).status_code)

    assert [guess(f"wrong password {number}") for number in range(5)] == [200] * 3 + [429] * 2
    assert guess(PASSWORD) == 429
    assert signed_in_as(stranger) is None
    assert sign_in(stranger, the_account()).status_code == 429
    let_pass(901)
    assert guess(PASSWORD) == 302
    assert signed_in_as(stranger) == "Ann"


def test_a_form_sent_again_with_its_password_clears_the_failures(
    client: Client, typed: dict[str, Any], limits: dict[str, Any]
) -> None:
    limits["sign_in"] = (2, 900)
    client.post(URL, typed)

    for _time in range(4):
        assert Client().post(URL, typed).status_code == 302
    other = {"username": "Bob"}
    for _time in range(4):
        assert Client().post(URL, typed | other).status_code == 200
    assert sign_in(Client(), the_account()).status_code == 302


@pytest.mark.fault_of("moto", "fails at the size of an attribute that is not there")
def test_a_repeated_form_stores_nothing_if_its_account_is_deleted_before_the_sign_in(
    proxy: FaultProxy, client: Client, typed: dict[str, Any]
) -> None:
    Client().post(URL, typed)
    [session_of_the_first] = stored_sessions()
    deletion = Meanwhile(lambda: delete(User.named("Ann")))
    proxy.plan("UpdateItem", deletion, when=lambda body: body["TableName"] == User.table())

    response = client.post(URL, typed)

    assert response.status_code == 200
    assert Page(response).errors == {"": ["This account was deleted meanwhile."]}
    assert shown_user(response) is None
    assert stored_items() == {}
    assert stored_sessions() == [session_of_the_first]


def test_an_invalid_request_id_is_replaced_and_nothing_typed_is_lost(
    client: Client, typed: dict[str, Any]
) -> None:
    good = typed.pop("request_id")
    missing: dict[str, str] = {}
    other = "1" if good[0] == "0" else "0"
    of_another_form = signing.TimestampSigner(salt="another.form").sign(good.partition(":")[0])
    too_old = request_id_drawn(timedelta(hours=24, minutes=1))
    bad = [too_old, of_another_form, good.partition(":")[0], other + good[1:], good[:-1], ""]
    bad += [good + "\0", "é:ü:ß", "a" * 100_000]

    for sent in (missing, *({"request_id": item} for item in bad)):
        response = client.post(URL, typed | sent)

        assert response.status_code == 200
        page = Page(response)
        assert page.errors.keys() == {"request_id"}
        assert stored_items() == {}
        assert kept(page) == {name: typed[name] for name in KEPT}
    assert signed_in_as(client) is None
    assert client.post(URL, typed | {"request_id": page.value("request_id")}).status_code == 302
    assert the_account().username == "Ann"


def test_an_invalid_value_is_refused_at_its_field(client: Client, typed: dict[str, Any]) -> None:
    for field, value in (
        ("password2", PASSWORD + "!"),
        ("password1", ""),
        ("username", "   "),
        *((name, "a\0b") for name in ANN),
    ):
        assert Page(client.post(URL, typed | {field: value})).errors[field]
    for weak in ("ab1!xyz", "Ann Example"):
        page = Page(client.post(URL, typed | {"password1": weak, "password2": weak}))
        assert page.errors["password1"]
    for bad in ("%FF", "%ED%A0%80"):
        body = urlencode(typed | {"username": "BROKEN"}).replace("BROKEN", f"a{bad}b")
        # `client.post` would encode it.
        response = client.generic("POST", URL, body, "application/x-www-form-urlencoded")
        assert Page(response).errors["username"]
    assert stored_items() == {}


def test_a_csrf_token_from_before_the_sign_in_is_accepted_only_with_the_form_that_signed_in(
    typed: dict[str, Any],
) -> None:
    client = Client(enforce_csrf_checks=True)
    page = Page(client.get(URL))
    typed |= {"csrfmiddlewaretoken": page.value("csrfmiddlewaretoken")}
    assert client.post(URL, typed).status_code == 302
    before = stored_items()

    response = client.post(URL, typed)
    assert (response.status_code, response["Location"]) == (302, "/")
    others = [{"email": "other@example.org"}, {"username": ""}, {"email": "other@xn--"}]
    for other in ({"username": "Other"}, *others):
        response = client.post(URL, typed | other)
        assert response.status_code == 403
    assert signed_in_as(client) == "Ann"
    assert stored_items() == before


def test_a_sign_up_in_a_signed_in_browser_ends_the_old_session(
    client: Client, typed: dict[str, Any]
) -> None:
    other = make_user(username="other")
    sign_in(client, other)

    client.post(URL, typed)

    assert signed_in_as(client) == "Ann"
    assert stored_ids(other) == set()
