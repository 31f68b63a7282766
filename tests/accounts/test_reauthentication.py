"""Pages that ask for the password again, unless it was entered within the last five minutes."""

from urllib.parse import quote

import pytest
from django.test import Client

from accounts.models import User
from accounts.sessions import visitor
from tests.factories import PASSWORD, make_user, stored_items
from tests.pages import Page, sign_in
from tests.requests import OF_EVERY_PAGE, Requests
from tests.session_maps import begun, forget_password_check

URL = "/accounts/reauthenticate/"
SESSIONS = "/accounts/sessions/"
EXPORT = "/accounts/export/"

pytestmark = pytest.mark.usefixtures("ann_is_signed_in", "_long_ago")


@pytest.fixture
def _long_ago(client: Client, request: pytest.FixtureRequest) -> None:
    """Ann signed in more than five minutes ago."""
    if "ann" in request.fixturenames:
        forget_password_check(client)


def test_a_fresh_sign_in_is_not_asked_again(engine: str, client: Client) -> None:
    sign_in(client, make_user())

    assert [client.get(page).status_code for page in (SESSIONS, EXPORT)] == [200, 200]


def test_an_older_sign_in_must_enter_the_password_and_returns_to_the_page(
    client: Client, ann: User
) -> None:
    for page in (EXPORT, f"{SESSIONS}?a=b&c=%26"):
        forget_password_check(client)
        asked = client.get(page)
        assert (asked.status_code, asked["Location"]) == (302, f"{URL}?next={quote(page)}")
        shown = Page(client.get(asked["Location"]))

        response = client.post(URL, {"password": PASSWORD, "next": shown.value("next")})

        assert (response.status_code, response["Location"]) == (302, page)
        assert client.get(page).status_code == 200


@pytest.mark.parametrize("page", [f"{SESSIONS}end/", f"{SESSIONS}end_others/"])
def test_a_form_of_an_older_sign_in_changes_nothing_and_returns_to_its_page(
    client: Client, ann: User, page: str
) -> None:
    other = begun(ann)
    before = stored_items()

    response = client.post(page, {"session": other})
    of_a_visitor = Client().post(page, {"session": other})

    assert (response.status_code, response["Location"]) == (302, f"{URL}?next={SESSIONS}")
    assert of_a_visitor["Location"] == f"/accounts/login/?next={SESSIONS}"
    assert stored_items() == before


def test_a_password_is_fresh_for_five_minutes(client: Client, ann: User) -> None:
    assert visitor.FRESH_SECONDS == 300
    for seconds, status in ((0, 200), (290, 200), (301, 302), (-60, 302), (10**9, 302)):
        forget_password_check(client, seconds)
        assert client.get(SESSIONS).status_code == status


def test_the_time_of_the_password_check_is_stored_in_this_session_alone_and_costs_one_write(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    other = Client()
    sign_in(other, ann)
    forget_password_check(other)
    requests_sent.clear()

    client.post(URL, {"password": PASSWORD})

    assert requests_sent.operations[:1] == OF_EVERY_PAGE
    assert requests_sent.operations[-1] == "PutItem"
    assert requests_sent.requests[-1]["TableName"] == "cache"  # the session
    assert client.get(SESSIONS).status_code == 200
    assert other.get(SESSIONS).status_code == 302
