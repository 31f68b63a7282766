"""DynamoDB does not answer: pages say so with 503 and in time, and keep what was typed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.test import Client, override_settings

from accounts.models import User
from dynamo.runtime import deadline
from tests.factories import PASSWORD, stored_items
from tests.faults.kinds import Answer
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.pages import ANN, PROFILE, SIGN_IN, SIGN_UP, Page, form_values

pytestmark = pytest.mark.usefixtures("changes_at_once", "ann_is_signed_in")


@contextmanager
def outage() -> Iterator[None]:
    """DynamoDB cannot be reached, and deadlines are short. Other faults: tests/dynamo."""
    with (
        pytest.MonkeyPatch.context() as patch,
        override_settings(DYNAMODB_PAGE_SECONDS=0.1),
        through(NOWHERE),
    ):
        patch.setattr(deadline, "OPERATION_SECONDS", 0.05)
        yield


@contextmanager
def unanswered(engine: str, write: str, **when: Any) -> Iterator[None]:
    """Requests of the operation `write` are carried out, but answered with an error."""
    lost = Answer(500, "InternalServerError", carried_out=True)
    with FaultProxy(engine) as proxy:
        proxy.plan(write, lost, times=1_000_000, **when)
        # Only the operation has a short deadline; the page's other requests may take their time.
        with pytest.MonkeyPatch.context() as patch, through(proxy):
            patch.setattr(deadline, "OPERATION_SECONDS", 0.1)
            yield


def is_session(body: dict[str, Any]) -> bool:
    """Whether a PutItem stores a session, not the counter of a limit."""
    return "N" not in body["Item"]["value"]


def careful_client(user: User | None = None) -> tuple[Client, dict[str, str]]:
    """A browser whose CSRF tokens are checked, and the field with its token."""
    client = Client(enforce_csrf_checks=True)
    if user:
        client.force_login(user)
    client.get(PROFILE if user else SIGN_IN)
    return client, {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}


def unavailable(response: Any) -> Page:
    """The page that says that DynamoDB does not answer."""
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert "no-store" in response["Cache-Control"]
    page = Page(response)
    assert "The database did not answer in time" in page.text
    assert "sessionid" not in response.cookies
    return page


def kept_form(response: Any, typed: dict[str, str]) -> dict[str, str]:
    """What the form on that page sends: what was typed, without the passwords."""
    page = unavailable(response)
    assert "Send the form again" in page.text
    sent = {name: page.value(name) for name in page.fields}
    for name, value in typed.items():
        assert sent[name] == ("" if "password" in name else value), name
    assert PASSWORD not in response.content.decode()
    return sent


def test_pages_that_need_no_account_are_served_and_a_sign_up_is_kept_and_can_be_sent_again(
    engine: str, client: Client
) -> None:
    visitor = Client()
    typed = form_values(client, SIGN_UP, **ANN)

    with outage():
        pages = ("/", SIGN_UP, "/nothing/", PROFILE)
        assert [visitor.get(page).status_code for page in pages] == [200, 200, 404, 302]
        assert kept_form(client.post(SIGN_UP, typed), typed)

    assert stored_items() == {}
    assert client.post(SIGN_UP, typed).status_code == 302


PAGES = ["/", PROFILE, SIGN_UP, SIGN_IN, "/accounts/email/", "/accounts/password_change/"]
FORMS: dict[str, dict[str, str]] = {
    SIGN_IN: {"username": "ann", "password": PASSWORD},
    PROFILE: {"full_name": "Ann Else"},
    "/accounts/email/": {"email": "anna@example.org", "password": PASSWORD},
    "/accounts/sessions/end_others/": {},
    "/accounts/logout/": {},
}
if apps.is_installed("invoices"):
    FORMS |= {
        "/invoices/new/": {"customer_name": "Bob", "lines-0-description": 'Work "A"\n<B>'},
        "/invoices/2026-000001/void/": {"reason": "Wrong customer"},
    }


def test_a_page_that_cannot_read_the_account_signs_nobody_out_and_keeps_the_form(
    engine: str, ann: User
) -> None:
    client, token = careful_client(ann)
    without_token, _token = careful_client(ann)
    kept: dict[str, dict[str, str]] = {}
    before = stored_items()

    with outage():
        for page in PAGES:
            assert unavailable(client.get(page))
        for page, typed in FORMS.items():
            shown = unavailable(client.post(page, typed | token))
            kept[page] = {name: shown.value(name) for name in shown.fields}
        passwords = dict.fromkeys(("old_password", "new_password1", "new_password2"), PASSWORD)
        shown = unavailable(client.post("/accounts/password_change/", passwords | token))
        assert shown.fields == {}
        urls = (SIGN_UP, SIGN_IN, PROFILE)
        refused = [without_token.post(url, {"username": "x"}).status_code for url in urls]
        assert refused == [503, 503, 403]

    assert stored_items() == before
    for page, typed in FORMS.items():
        assert client.post(page, kept[page]).status_code in {200, 302, 404}
        del kept[page]["csrfmiddlewaretoken"]
        assert kept[page] == {name: typed[name] for name in typed if name != "password"}


@pytest.mark.parametrize(
    ("write", "when", "is_pending", "accounts"),
    [
        ("TransactWriteItems", {}, False, 1),
        ("PutItem", {"when": is_session}, False, 1),
        ("PutItem", {}, True, 0),
    ],
)
def test_a_sign_up_whose_write_is_not_answered_makes_one_account_when_sent_again(
    engine: str, settings: Any, write: str, when: dict[str, Any], is_pending: bool, accounts: int
) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = is_pending
    client = Client(enforce_csrf_checks=True)
    typed = form_values(client, SIGN_UP, **ANN)
    token = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}

    with unanswered(engine, write, **when):
        again = kept_form(client.post(SIGN_UP, typed | token), typed)
    assert len(stored_items()) == 3 * accounts
    response = client.post(SIGN_UP, again | {"password1": PASSWORD, "password2": PASSWORD})

    assert response.status_code == 302
    assert len(stored_items()) == (0 if is_pending else 3)
    assert client.get(PROFILE).status_code == (302 if is_pending else 200)


@pytest.mark.parametrize(
    ("page", "typed"),
    [
        (PROFILE, {"full_name": "Ann Else"}),
        ("/accounts/username/", {"username": "anna", "password": PASSWORD}),
    ],
)
def test_a_change_whose_write_is_not_answered_succeeds_when_sent_again(
    engine: str, client: Client, ann: User, page: str, typed: dict[str, str]
) -> None:
    write = "UpdateItem" if page == PROFILE else "TransactWriteItems"

    with unanswered(engine, write):
        again = kept_form(client.post(page, typed), typed)
    assert client.post(page, again | typed)["Location"] == PROFILE

    assert (User.get(ann.pk).full_name or User.get(ann.pk).username) in typed.values()


def test_a_sign_in_whose_session_is_not_stored_can_be_sent_again(engine: str, ann: User) -> None:
    client, token = careful_client()
    with unanswered(engine, "PutItem", when=is_session):
        typed = {"username": "ann", "password": PASSWORD} | token
        shown = unavailable(client.post(SIGN_IN, typed))

    again = {name: shown.value(name) for name in shown.fields}
    asked = client.post(SIGN_IN, again)
    assert Page(asked).value("username") == again["username"] == "ann"
    assert client.post(SIGN_IN, again | {"password": PASSWORD}).status_code == 302
