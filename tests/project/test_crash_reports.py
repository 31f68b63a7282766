"""Django's crash reports contain no secret, in production and in development."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.tokens import default_token_generator
from django.core.signals import got_request_exception
from django.test import Client
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.views.debug import get_exception_reporter_class

from tests.factories import PASSWORD, make_user, stored_items
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from tests.pages import form_values, new_account

pytestmark = pytest.mark.usefixtures("engine")

NEW = "another <horse> & 'battery'"


class BrokenHasher(MD5PasswordHasher):
    """Fails while it has the password in a variable."""

    def encode(self, password: str, salt: str) -> str:
        raise RuntimeError("a bug")


@pytest.fixture
def reports() -> Iterator[list[str]]:
    """The reports of the crashes, as pages and as text."""
    made: list[str] = []

    def report(request: Any, **_signal: Any) -> None:
        reporter = get_exception_reporter_class(request)(request, *sys.exc_info())
        made.extend([reporter.get_traceback_html(), reporter.get_traceback_text()])

    got_request_exception.connect(report)
    yield made
    got_request_exception.disconnect(report)


@pytest.fixture
def visitor() -> Client:
    return Client(raise_request_exception=False)


def hashes() -> set[str]:
    return {item["password"]["S"] for item in stored_items().values() if "password" in item}


SIGN_UP = new_account("bob", NEW)
#: Servers put theirs into each request.
ENVIRONMENT = {
    "AWS_SECRET_ACCESS_KEY": "s3cret-of-aws",
    "DJANGO_SECRET_KEY": "s3cret-of-django",
    "EMAIL_URL": "smtp://site:s3cret-of-mail@mail.example.org",
}
#: Forms with passwords, by their addresses.
FORMS = {
    "/accounts/signup/": SIGN_UP,
    "/accounts/login/": {"username": "ann", "password": PASSWORD},
    "/accounts/password_change/": dict.fromkeys(("new_password1", "new_password2"), NEW)
    | {"old_password": PASSWORD},
    "/accounts/delete/": {"password": PASSWORD},
    "/accounts/reauthenticate/": {"password": PASSWORD},
}


@pytest.mark.parametrize(
    ("address", "hold", "debug"),
    [
        *((address, False, False) for address in FORMS),
        *(("/accounts/signup/", True, False), ("/accounts/login/", False, True)),
    ],
)
def test_a_crash_shows_neither_a_password_that_was_sent_nor_secrets_of_the_environment(
    visitor: Client, reports: list[str], settings: Any, address: str, hold: bool, debug: bool
) -> None:
    user = make_user(username="ann")
    if address not in {"/accounts/signup/", "/accounts/login/"}:
        visitor.force_login(user)
    settings.ACCOUNTS_PREVENT_ENUMERATION = hold
    values = form_values(visitor, address, **FORMS[address])
    settings.PASSWORD_HASHERS = [f"{__name__}.BrokenHasher"]
    settings.DEBUG = debug

    response = visitor.post(address, values, **ENVIRONMENT)

    assert response.status_code == 500
    secrets = {PASSWORD, NEW, *(cookie.value for cookie in visitor.cookies.values())}
    if not debug:
        secrets |= hashes()
    for report in [*reports, response.content.decode()]:
        assert [secret for secret in secrets if secret in report] == []
    assert len(reports) == 2
    for report in reports:
        assert all(name in report for name in ("a bug", "encode", "EMAIL_URL"))
        assert "s3cret" not in report


def test_a_crash_does_not_show_the_token_of_a_link(
    visitor: Client, reports: list[str], settings: Any
) -> None:
    user = make_user()
    token = default_token_generator.make_token(user)
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    form = visitor.get(f"/accounts/reset/{uid}/{token}/").url
    settings.PASSWORD_HASHERS = [f"{__name__}.BrokenHasher"]

    visitor.post(form, {"new_password1": NEW, "new_password2": NEW})

    assert len(reports) == 2
    secrets = (token, NEW, visitor.cookies["sessionid"].value)
    assert [secret for secret in secrets for report in reports if secret in report] == []


@pytest.mark.parametrize("debug", [False, True])
def test_a_crash_while_the_session_is_read_does_not_show_its_key(
    visitor: Client, reports: list[str], proxy: FaultProxy, settings: Any, debug: bool
) -> None:
    visitor.force_login(make_user())
    proxy.plan("GetItem", Answer(400, "ValidationException"))
    settings.DEBUG = debug

    response = visitor.get("/accounts/profile/")

    assert response.status_code == 500
    for report in [*reports, response.content.decode()]:
        assert visitor.cookies["sessionid"].value not in report


def test_a_crash_while_an_account_is_written_does_not_show_its_hash(
    visitor: Client, reports: list[str], proxy: FaultProxy
) -> None:
    visitor.force_login(make_user())
    address = "/accounts/password_change/"
    values = form_values(visitor, address, **FORMS[address])
    for operation in ("PutItem", "TransactWriteItems", "UpdateItem"):
        proxy.plan(
            operation, Answer(400, "ValidationException"), when=lambda body: "users" in str(body)
        )

    assert visitor.post(address, values).status_code == 500

    assert len(reports) == 2
    # The beginning of the suite's hashes.
    assert not any("md5$" in report for report in reports)
