"""Signing in and out, the end of sessions, and the cost of pages."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.services import deactivate, delete
from tests.factories import PASSWORD, make_user, stored_items
from tests.pages import PROFILE, Page, meanwhile, shown_user, sign_in, signed_in_as, stored_sessions
from tests.requests import OF_EVERY_PAGE, Requests

URL = "/accounts/login/"
PAGES = [
    PROFILE,
    "/accounts/username/",
    "/accounts/email/",
    "/accounts/password_change/",
    "/accounts/password_change/done/",
    "/accounts/delete/",
]
# It also reads which years have invoices: see tests/invoices/test_account_data.py.
WITHOUT_OTHER_DATA = [page for page in PAGES if page != "/accounts/delete/"]


def attempt(client: Client, username: str, password: str = PASSWORD, **more: str) -> Any:
    return client.post(URL, {"username": username, "password": password} | more)


def test_a_username_or_email_address_signs_in_in_any_spelling(engine: str) -> None:
    user = make_user(username="ann", email="ann@bücher.example")

    for who in ("Ann", "ＡＮＮ", " Ann ", "Ann@Bücher.example", "ANN@xn--bcher-kva.example"):
        client = Client()
        response = attempt(client, who)

        assert (response.status_code, response["Location"]) == (302, "/")
        assert signed_in_as(client) == "ann"
    read = User.get(user.pk)
    assert read.last_login is not None
    assert read.version == user.version


REFUSALS = [
    pytest.param("ann", "wrong password", lambda ann: ann, id="wrong password"),
    pytest.param("ann@example.org", "wrong password", lambda ann: ann, id="wrong, by address"),
    pytest.param("nobody@example.org", PASSWORD, lambda ann: ann, id="unknown address"),
    pytest.param("ann", PASSWORD, deactivate, id="deactivated"),
    pytest.param("ann", PASSWORD, delete, id="unknown"),
    pytest.param("ann", PASSWORD, lambda ann: ann.set_unusable_password() or ann.save(), id="none"),
]


@pytest.mark.parametrize(("who", "password", "change"), REFUSALS)
def test_every_refusal_looks_the_same_and_takes_the_same_work(
    client: Client,
    ann: User,
    requests_sent: Requests,
    hashings: list[str],
    who: str,
    password: str,
    change: Callable[[User], Any],
) -> None:
    change(ann)
    before = stored_items()
    requests_sent.clear()
    hashings.clear()

    response = attempt(client, who, password, next="/accounts/email/")

    assert requests_sent.apart() == (["GetItem", "GetItem"], ["PutItem", "PutItem"])
    assert len(hashings) == 1
    assert response.status_code == 200
    page = Page(response)
    assert page.errors == {
        "": ["No account has this username or email address with this password."]
    }
    assert page.value("username") == who
    assert page.value("next") == "/accounts/email/"
    assert "sessionid" not in response.cookies
    assert stored_items() == before
    assert stored_sessions() == []


def test_a_text_that_names_no_account_signs_nobody_in_and_an_invalid_value_is_refused_at_its_field(
    client: Client, ann: User
) -> None:
    unknown = ["8ec436a8-97e6-4e72-aec2-b47668e96a94", "userName#ann", "@", "a@b@c", "ann\u202e"]
    for who in (ann.pk, "x" * 254, *unknown):
        assert Page(attempt(client, who)).errors.keys() == {""}
    for field, value in (
        *(("username", text) for text in ("", "a\0b", "x" * 255, "\u0300\u0315" * 100_000)),
        *(("password", text) for text in ("", "a\0b")),
    ):
        page = Page(client.post(URL, {"username": "ann", "password": PASSWORD, field: value}))
        assert page.errors[field]
        assert page.autofocused() == [field]
    assert stored_sessions() == []


def test_an_account_deleted_after_the_password_check_is_not_stored_again(
    engine: str, client: Client, ann: User
) -> None:
    with meanwhile(engine, "UpdateItem", lambda: delete(User.get(ann.pk))):
        response = attempt(client, "ann")

    assert response.status_code == 200
    assert Page(response).errors == {"": ["This account was deleted meanwhile."]}
    assert shown_user(response) is None
    assert stored_items() == {}
    assert stored_sessions() == []


def test_the_form_sent_again_with_the_token_from_before_the_sign_in_needs_the_same_account(
    ann: User,
) -> None:
    make_user(username="bob", email="bob@example.org")
    client = Client(enforce_csrf_checks=True)
    token = Page(client.get(URL)).value("csrfmiddlewaretoken")
    attempt(client, "ann", csrfmiddlewaretoken=token)

    for same in ("ann", "ANN", "Ann@Example.org"):
        response = attempt(client, same, csrfmiddlewaretoken=token)
        assert (response.status_code, response["Location"]) == (302, "/")
    for other in ("bob", "bob@example.org", ann.pk, "", "x" * 3_000):
        assert attempt(client, other, csrfmiddlewaretoken=token).status_code == 403
    assert signed_in_as(client) == "ann"


def test_a_sign_in_costs_the_search_one_update_and_one_session(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    attempt(client, "ann")

    operations, _of_limits = requests_sent.apart()
    assert sorted(operations) == ["GetItem", "GetItem", "PutItem", "UpdateItem"]


@pytest.mark.fault_of("ministack", "tells no capacity of a batch of reads")
@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
def test_a_page_costs_a_signed_in_user_one_request_and_two_units_and_others_none(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    sign_in(client, ann)

    for page in ("/accounts/sessions/", *WITHOUT_OTHER_DATA):
        requests_sent.clear()
        assert client.get(page).status_code == 200
        assert (requests_sent.operations, requests_sent.units) == (OF_EVERY_PAGE, 2)
        [request] = requests_sent.requests
        read = [table["ConsistentRead"] for table in request["RequestItems"].values()]
        assert read == [True, True]
    requests_sent.clear()
    for page in ("/", URL, "/accounts/signup/", *PAGES, "/nothing/here/"):
        Client().get(page)
    assert requests_sent.operations == []


def test_a_sign_out_that_would_lead_to_itself_leads_to_the_usual_page(engine: str) -> None:
    url = "/accounts/logout/"
    usual, itself = (Client().post(url, {"next": to}) for to in ("", url))

    assert itself["Location"] == usual["Location"]
