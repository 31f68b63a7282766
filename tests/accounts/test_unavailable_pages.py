"""DynamoDB out of reach: pages say so with 503 and in time, commands in one line."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client, override_settings

from accounts.models import User
from dynamo.client import deadline, sending
from tests import engines
from tests.accounts.test_sign_up_page import ANN
from tests.clocks import Stopwatch
from tests.commands import run
from tests.factories import PASSWORD, make_user, stored_items
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy, through
from tests.pages import Page, form_values, sign_in

SIGN_UP = "/accounts/signup/"
SIGN_IN = "/accounts/login/"
PROFILE = "/accounts/profile/"
LONGEST_SECONDS = 10.0


@contextmanager
def nobody_listens(_engine: str) -> Iterator[None]:
    with through(f"http://127.0.0.1:{engines.free_port()}"):
        yield


@contextmanager
def nobody_answers(_engine: str) -> Iterator[None]:
    with (
        socket.create_server(("127.0.0.1", 0)) as black_hole,
        through(f"http://127.0.0.1:{black_hole.getsockname()[1]}"),
    ):
        yield


@contextmanager
def throttled(engine: str) -> Iterator[None]:
    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("*", Answer(400, "ThrottlingException"), times=1_000_000)
        yield


@contextmanager
def failing(engine: str) -> Iterator[None]:
    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("*", Answer(500, "InternalServerError"), times=1_000_000)
        yield


Outage = Callable[[str], Any]
OUTAGES = [nobody_listens, nobody_answers, throttled, failing]


@contextmanager
def impatiently(outage: Any) -> Iterator[None]:
    """The same rules with short times; one test keeps the real ones."""
    with pytest.MonkeyPatch.context() as patch, override_settings(DYNAMODB_PAGE_SECONDS=0.1):
        patch.setattr(deadline, "OPERATION_SECONDS", 0.05)
        patch.setattr(sending, "CONNECT_SECONDS", 0.1)
        patch.setattr(sending, "READ_SECONDS", 0.1)
        with outage:
            yield


@pytest.fixture
def ann(engine: str, client: Client) -> User:
    """An account whose owner is signed in as `client`."""
    user = make_user(username="Ann", email="ann@example.org")
    sign_in(client, user)
    return user


def assert_says_so(response: Any) -> Page:
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert "no-store" in response["Cache-Control"]
    page = Page(response)
    assert "The database did not answer in time" in page.text
    assert "sessionid" not in response.cookies
    return page


def assert_keeps(response: Any, typed: dict[str, str]) -> dict[str, str]:
    """The page has the form with what was typed, but for passwords; what it sends."""
    page = assert_says_so(response)
    assert "Send the form again" in page.text
    sent = {name: page.value(name) for name in page.fields}
    for name, value in typed.items():
        assert sent[name] == ("" if "password" in name else value), name
    assert PASSWORD not in response.content.decode()
    return sent


@pytest.mark.slow
@pytest.mark.usefixtures("real_patience")
@pytest.mark.parametrize("outage", OUTAGES)
def test_every_page_answers_within_ten_seconds(
    engine: str, client: Client, ann: User, outage: Outage
) -> None:
    visitor = Client()
    typed = form_values(visitor, SIGN_UP, **(ANN | {"username": "bob"}))
    asked: list[Callable[[], Any]] = [
        lambda: visitor.post(SIGN_UP, typed),
        lambda: visitor.post(SIGN_IN, {"username": "ann", "password": PASSWORD}),
        lambda: client.get(PROFILE),
        lambda: client.post(PROFILE, {"full_name": "Ann"}),
    ]
    with outage(engine):
        for ask in asked:
            with Stopwatch() as answering:
                response = ask()
            assert answering.seconds < LONGEST_SECONDS
            assert_says_so(response)


@pytest.mark.usefixtures("real_patience")
def test_a_page_answers_within_ten_seconds(engine: str, client: Client, ann: User) -> None:
    with nobody_answers(engine), Stopwatch() as answering:
        response = client.get(PROFILE)

    assert answering.seconds < LONGEST_SECONDS
    assert_says_so(response)


@pytest.mark.parametrize("outage", OUTAGES)
def test_signing_up_says_so_and_writes_nothing_by_halves(
    engine: str, client: Client, outage: Outage
) -> None:
    typed = form_values(client, SIGN_UP, **ANN)

    with impatiently(outage(engine)):
        assert_keeps(client.post(SIGN_UP, typed), typed)

    assert stored_items() == {}
    assert client.post(SIGN_UP, typed).status_code == 302


@pytest.mark.parametrize("outage", OUTAGES)
def test_signing_in_says_so(engine: str, ann: User, outage: Outage) -> None:
    visitor = Client()
    before = stored_items()

    with impatiently(outage(engine)):
        assert_says_so(visitor.post(SIGN_IN, {"username": "ann", "password": PASSWORD}))

    assert stored_items() == before


@pytest.mark.parametrize("outage", [nobody_listens, throttled])
@pytest.mark.parametrize(
    "page", ["/", PROFILE, SIGN_UP, SIGN_IN, "/accounts/email/", "/accounts/password_change/"]
)
def test_every_page_of_who_is_signed_in_says_so_and_does_not_sign_out(
    engine: str, client: Client, ann: User, outage: Outage, page: str
) -> None:
    with impatiently(outage(engine)):
        assert_says_so(client.get(page))

    assert client.get(PROFILE).status_code == 200


@pytest.mark.parametrize("outage", [nobody_listens, throttled])
@pytest.mark.parametrize(
    ("page", "values"),
    [
        (PROFILE, {"full_name": "Elsewhere"}),
        ("/accounts/username/", {"username": "anna", "password": PASSWORD}),
        ("/accounts/email/", {"email": "anna@example.org", "password": PASSWORD}),
        ("/accounts/delete/", {"password": PASSWORD}),
        ("/accounts/logout/", {}),
    ],
)
def test_every_change_says_so_and_changes_nothing(
    engine: str, client: Client, ann: User, outage: Outage, page: str, values: dict[str, str]
) -> None:
    before = stored_items()

    with impatiently(outage(engine)):
        assert_says_so(client.post(page, values))

    assert stored_items() == before
    assert client.get(PROFILE).status_code == 200


@contextmanager
def unanswered(engine: str, write: str) -> Iterator[None]:
    """Writes of this kind are carried out, but nobody is told so."""
    with FaultProxy(engine) as proxy:
        proxy.plan(write, Answer(500, "InternalServerError", carried_out=True), times=1_000_000)
        # Only what fails is given up soon: what else the page asks for may take its time.
        with pytest.MonkeyPatch.context() as patch, through(proxy):
            patch.setattr(deadline, "OPERATION_SECONDS", 0.1)
            yield


@pytest.mark.parametrize(
    ("write", "held"),
    [("UpdateItem", False), ("TransactWriteItems", False), ("PutItem", False), ("PutItem", True)],
)
def test_the_sign_up_form_is_kept_and_sent_again_makes_one_account(
    engine: str, settings: Any, write: str, held: bool
) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = held
    client = Client(enforce_csrf_checks=True)
    typed = form_values(client, SIGN_UP, **ANN)
    token = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}

    with unanswered(engine, write):
        again = assert_keeps(client.post(SIGN_UP, typed | token), typed)
    again |= {"password1": PASSWORD, "password2": PASSWORD}
    response = client.post(SIGN_UP, again)

    assert response.status_code == 302
    assert len(stored_items()) == (0 if held else 3)
    if not held:
        assert client.get(PROFILE).status_code == 200


def test_the_form_is_kept_where_only_the_session_could_not_be_saved(engine: str) -> None:
    client = Client(enforce_csrf_checks=True)
    typed = form_values(client, SIGN_UP, **ANN)
    token = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}
    with FaultProxy(engine) as proxy, pytest.MonkeyPatch.context() as patch, through(proxy):
        patch.setattr(deadline, "OPERATION_SECONDS", 0.1)
        lost = Answer(500, "InternalServerError", carried_out=True)
        is_session = {"when": lambda body: "N" not in body["Item"]["value"]}
        proxy.plan("PutItem", lost, times=1_000_000, **is_session)
        again = assert_keeps(client.post(SIGN_UP, typed | token), typed)
    assert len(stored_items()) == 3

    response = client.post(SIGN_UP, again | {"password1": PASSWORD, "password2": PASSWORD})

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    assert client.get(PROFILE).status_code == 200


@pytest.mark.parametrize(
    ("page", "values", "write"),
    [
        (PROFILE, {"full_name": "Ann Else", "business_address": "1 Road\nTown"}, "UpdateItem"),
        ("/accounts/username/", {"username": "anna"}, "TransactWriteItems"),
        ("/accounts/username/", {"username": "anna"}, "DeleteItem"),
        ("/accounts/email/", {"email": "anna@example.org"}, "TransactWriteItems"),
        ("/accounts/email/", {"email": "anna@example.org"}, "DeleteItem"),
    ],
)
def test_a_form_that_changes_an_account_is_kept_and_sent_again_succeeds(
    engine: str, client: Client, ann: User, page: str, values: dict[str, str], write: str
) -> None:
    password = {} if page == PROFILE else {"password": PASSWORD}

    with unanswered(engine, write):
        again = assert_keeps(client.post(page, values | password), values | password)
    response = client.post(page, again | password)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    stored = User.get(ann.pk)
    assert {name: getattr(stored, name) for name in values} == values


def test_a_form_that_is_kept_does_not_ask_who_is_signed_in(engine: str) -> None:
    visitor = Client()
    sign_in(visitor, make_user())
    typed = form_values(Client(), SIGN_UP, **ANN)

    with impatiently(nobody_listens(engine)):
        assert_keeps(visitor.post(SIGN_UP, typed), typed)


INVOICE = {"customer_name": "Bob", "lines-0-description": 'Work "A"\n<B>', "request_id": "signed"}


@pytest.mark.parametrize(
    ("page", "typed"),
    [
        ("/invoices/new/", INVOICE),
        ("/invoices/2026-000001/void/", {"reason": "Wrong customer"}),
        (SIGN_IN, {"username": "ann", "password": PASSWORD}),
        (PROFILE, {"full_name": "Ann Else"}),
        ("/accounts/logout/", {}),
        ("/accounts/sessions/end_others/", {}),
    ],
)
def test_where_the_account_cannot_be_read_the_page_sends_the_form_again(
    engine: str, ann: User, page: str, typed: dict[str, str]
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    client.get(PROFILE)
    token = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}

    with impatiently(nobody_listens(engine)):
        shown = assert_says_so(client.post(page, typed | token))

    kept = {name: value for name, value in typed.items() if name != "password"}
    sent = {name: shown.value(name) for name in shown.fields}
    assert sent == kept | {"csrfmiddlewaretoken": sent["csrfmiddlewaretoken"]}
    assert client.post(page, sent).status_code in {200, 302, 404}


def test_a_sign_in_whose_session_could_not_be_saved_is_sent_again(engine: str, ann: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.get(SIGN_IN)
    token = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}
    with FaultProxy(engine) as proxy, pytest.MonkeyPatch.context() as patch, through(proxy):
        patch.setattr(deadline, "OPERATION_SECONDS", 0.1)
        is_session = {"when": lambda body: "N" not in body["Item"]["value"]}
        proxy.plan("PutItem", Answer(500, "InternalServerError"), times=1_000_000, **is_session)
        typed = {"username": "ann", "password": PASSWORD} | token
        shown = assert_says_so(client.post(SIGN_IN, typed))

    again = {name: shown.value(name) for name in shown.fields}
    asked = client.post(SIGN_IN, again)
    assert Page(asked).value("username") == again["username"] == "ann"
    assert client.post(SIGN_IN, again | {"password": PASSWORD}).status_code == 302


def test_a_form_that_has_only_passwords_is_opened_again(engine: str, ann: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    client.get(PROFILE)
    token = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}
    typed = {"old_password": PASSWORD, "new_password1": "x", "new_password2": "x"}

    with impatiently(nobody_listens(engine)):
        page = assert_says_so(client.post("/accounts/password_change/", typed | token))

    assert page.fields == {}


@pytest.mark.parametrize("outage", [nobody_listens, throttled])
def test_a_form_without_its_token_gets_a_page_all_the_same(
    engine: str, ann: User, outage: Outage
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)

    with impatiently(outage(engine)):
        answers = [client.post(url, {"username": "x"}) for url in (SIGN_UP, SIGN_IN, PROFILE)]

    assert [response.status_code for response in answers] == [503, 503, 403]


@pytest.mark.parametrize("outage", OUTAGES)
def test_what_needs_no_account_is_served(engine: str, outage: Outage) -> None:
    visitor = Client()

    with impatiently(outage(engine)):
        assert visitor.get("/").status_code == 200
        assert visitor.get(SIGN_UP).status_code == 200
        assert visitor.get("/nothing/").status_code == 404
        assert visitor.get(PROFILE).status_code == 302


@pytest.mark.parametrize("outage", [nobody_listens, throttled])
@pytest.mark.parametrize(
    "command",
    [
        ["showuser", "ann"],
        ["listusers"],
        ["changeemail", "ann", "anna@example.org"],
        ["changeusername", "ann", "anna"],
        ["deactivateuser", "ann"],
        ["activateuser", "ann"],
        ["deleteuser", "ann", "--no-input"],
        ["createuser", "--username=bob", "--email=bob@example.org", "--unusable-password"],
        ["changepassword", "ann"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_says_so_in_one_line(
    engine: str, ann: User, outage: Outage, command: list[str]
) -> None:
    before = stored_items()

    with impatiently(outage(engine)):
        out, err, code = run(*command)

    assert code == 1
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "DynamoDB gave no answer" in err
    assert stored_items() == before
