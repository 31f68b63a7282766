"""No log line, at any level, contains a password, hash, session key or link token."""

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as site
from django.core.mail import EmailMessage
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import URLResolver, get_resolver, include, path

from project.logs import (
    HIDDEN,
    TALKATIVE,
    HidingFormatter,
    HidingJsonFormatter,
    TalkativeFilter,
    hiding,
    request_id,
)
from tests.factories import stored_items
from tests.faults.proxy import NOWHERE, through
from tests.fork_server import fork_server
from tests.pages import form_values, new_account
from tests.production import PRODUCTION

PASSWORD = "correct horse battery staple"
WRONG = "wrong horse battery staple"
LATER = "another horse battery staple"


def broken(request: HttpRequest, token: str) -> HttpResponse:
    raise RuntimeError(f"a bug that names {token}")


urlpatterns = [path("new/<str:token>/", broken), path("", include("project.urls"))]


def loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(item for item in known if isinstance(item, logging.Logger))]


def our_handler() -> logging.StreamHandler[Any]:
    handlers: list[Any] = logging.root.handlers
    [handler] = [handler for handler in handlers if isinstance(handler.formatter, HidingFormatter)]
    return handler


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the site's handler writes while every logger lets everything pass."""
    talkative = (name.rstrip(".") for name in TALKATIVE)
    for name in (*talkative, "asyncio", "django.request", "django.server", "django.security.csrf"):
        logging.getLogger(name)
    levels = [(logger, logger.level) for logger in loggers()]
    lines = io.StringIO()
    # An answer that an earlier test left open has not ended its request.
    request_id.set(None)
    # Not by `setStream`, which flushes the one before: another test's, closed by now perhaps.
    monkeypatch.setattr(our_handler(), "stream", lines)
    for logger, _level in levels:
        logger.setLevel(logging.DEBUG)
    yield lines
    for logger, level in levels:
        logger.setLevel(level)


@pytest.fixture
def written_as_json(written: io.StringIO) -> Iterator[io.StringIO]:
    """What the same handler writes in production."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(HidingJsonFormatter())
    handler.addFilter(TalkativeFilter())
    logging.root.addHandler(handler)
    yield lines
    logging.root.removeHandler(handler)


class Visitor:
    """A visitor that remembers every secret of its requests and pages."""

    def __init__(self, mails: list[EmailMessage]) -> None:
        self.client = Client(raise_request_exception=False)
        self.secrets = {PASSWORD, WRONG, LATER}
        self.mails = mails

    def get(self, address: str) -> Any:
        return self._met(self.client.get(address))

    def send(self, address: str, **values: str) -> Any:
        shown = form_values(self.client, address, **values)
        return self._met(self.client.post(address, shown))

    def mailed_path(self) -> str:
        """Where the link of the last mail leads; its last part is a secret."""
        [address] = re.findall(r"http://testserver(\S+)", str(self.mails[-1].body))
        self.secrets.add(address.strip("/").rpartition("/")[2])
        return str(address)

    def _met(self, response: Any) -> Any:
        for name in (site.SESSION_COOKIE_NAME, site.ACCOUNTS_COOKIE_NAME, site.CSRF_COOKIE_NAME):
            if name in self.client.cookies and (value := self.client.cookies[name].value):
                self.secrets.add(value)
        if not response.streaming:
            token = rb'name="csrfmiddlewaretoken" value="([^"]+)"'
            self.secrets |= {found.decode() for found in re.findall(token, response.content)}
        for item in stored_items().values():
            if "password" in item:
                self.secrets.add(item["password"]["S"])
        return response


@pytest.mark.urls(__name__)
@pytest.mark.usefixtures("engine")
def test_everything_that_an_account_does_leaves_no_secret_in_the_log(
    written: io.StringIO,
    written_as_json: io.StringIO,
    mailoutbox: list[EmailMessage],
    settings: Any,
) -> None:
    ann = Visitor(mailoutbox)
    settings.ACCOUNTS_EMAIL_CHANGE = "confirm"
    settings.DYNAMODB_PAGE_SECONDS = 60

    assert ann.send("/accounts/signup/", **new_account("ann", PASSWORD)).status_code == 302
    confirm = ann.mailed_path()
    assert ann.get(confirm).status_code == 200
    assert ann.send(confirm).status_code == 302
    ann.get("/accounts/sessions/")
    ann.get("/accounts/export/").getvalue()
    ann.send("/accounts/email/", email="ann@new.example", password=WRONG)
    ann.send("/accounts/email/", email="ann@new.example", password=PASSWORD)
    assert ann.send(ann.mailed_path()).status_code == 302
    changed = {"old_password": PASSWORD, "new_password1": LATER, "new_password2": LATER}
    ann.send("/accounts/password_change/", **changed)
    ann.client.post("/accounts/sessions/end_others/")
    ann.client.post("/accounts/logout/")

    ann.send("/accounts/login/", username="ann", password=WRONG)
    assert ann.send("/accounts/login/", username="ann", password=LATER).status_code == 302
    ann.client.post("/accounts/logout/")
    ann.send("/accounts/password_reset/", email="ann@new.example")
    reset = ann.mailed_path()
    form = ann.get(reset).url
    ann.send(form, new_password1=PASSWORD, new_password2=PASSWORD)
    assert "does not work" in ann.get(reset).content.decode()

    settings.ACCOUNTS_PREVENT_ENUMERATION = True
    ann.send("/accounts/signup/", **new_account("bob", PASSWORD))
    assert ann.send(ann.mailed_path()).status_code == 302

    token = confirm.strip("/").rpartition("/")[2]
    strict = Client(enforce_csrf_checks=True)
    assert ann.get(f"/accounts/login/?next={confirm}").status_code == 200
    assert ann.get(f"{confirm}more").status_code == 404
    assert strict.post(confirm, {"password": PASSWORD}).status_code == 403
    assert ann.client.put(confirm, {"password": PASSWORD}).status_code == 405
    assert ann.get(f"/new/{token}/").status_code == 500
    ann.secrets.add("t0ken-of-a-machine")
    bearer = {"authorization": "Bearer t0ken-of-a-machine"}
    assert ann.client.get("/t0ken-of-a-machine", headers=bearer).status_code == 404
    with through(NOWHERE):
        settings.DYNAMODB_PAGE_SECONDS = 0.1
        assert ann.client.post(confirm).status_code == 503

    log = written.getvalue()
    assert len(ann.secrets) > 15
    assert [secret for secret in ann.secrets if secret in log] == []
    lines = [json.loads(line) for line in written_as_json.getvalue().splitlines()]
    values = "\n".join(str(value) for line in lines for value in line.values())
    assert [secret for secret in ann.secrets if secret in values] == []
    assert {"exception", "path"} <= {name for line in lines for name in line}
    for line in (
        f"Not Found: /accounts/confirm/{HIDDEN}/more",
        f"Method Not Allowed (PUT): /accounts/confirm/{HIDDEN}/",
        f"Forbidden (CSRF cookie not set.): /accounts/confirm/{HIDDEN}/",
        f"Internal Server Error: /new/{HIDDEN}/",
        f"RuntimeError: a bug that names {HIDDEN}",
        f"POST /accounts/confirm/{HIDDEN}/: DynamoDB gave no answer",
    ):
        assert line in log


def test_every_handler_hides_secrets() -> None:
    handlers = {handler for logger in loggers() for handler in logger.handlers}
    ours = [
        handler
        for handler in handlers
        if not isinstance(handler, logging.NullHandler)
        and not type(handler).__module__.startswith("_pytest")
    ]

    assert ours == [our_handler()]
    assert [type(filter_) for filter_ in ours[0].filters] == [TalkativeFilter]
    assert logging.getLogger("django.server").propagate


@pytest.mark.parametrize(
    "line",
    [
        '"GET /accounts/confirm/{} HTTP/1.1" 302 0',
        '"GET /accounts/confirm/{}/ HTTP/1.1" 302 0',
        '"GET /accounts/confirm/{}?from=mail HTTP/1.1" 404 0',
        '"GET /accounts/login/?next=/accounts/confirm/{}/&x=1 HTTP/1.1" 200 0',
        '"GET /accounts/login/?next=%2Faccounts%2Fconfirm%2F{}%2F HTTP/1.1" 200 0',
        "Not Found: /accounts/reset/Zm9v/{}/and/more",
        "Not Found: /under/a/prefix/accounts/email/confirm/{}/",
        "<WSGIRequest: GET '/accounts/signup/confirm/{}/'>",
    ],
)
def test_the_server_s_own_lines_show_no_token(written: io.StringIO, line: str) -> None:
    logging.getLogger("django.server").info("%s", line.format("WyJ-a_b:1abc:Zx"))

    assert line.format(HIDDEN) in written.getvalue()


def token_routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from token_routes(pattern, route)
        elif "token" in route:
            yield route


def test_the_tokens_of_all_urls_are_hidden() -> None:
    routes = list(token_routes(get_resolver()))
    assert len(routes) >= 4

    for route in routes:
        shown = "/" + re.sub("<[^>]*>", "s3cr3t:v4lue", route)
        assert "s3cr3t:v4lue" not in hiding()(shown).rpartition("/reset/s3cr3t:v4lue")[2], route


@pytest.mark.parametrize("name", ["botocore.endpoint", "urllib3", "pynamodb.connection.base"])
def test_only_warnings_of_talkative_libraries_are_written(written: io.StringIO, name: str) -> None:
    logging.getLogger(name).info("whole request")
    logging.getLogger(name).warning("pool is full")

    assert "pool is full" in written.getvalue()
    assert "whole request" not in written.getvalue()


def test_other_lines_are_written_as_they_are(written: io.StringIO) -> None:
    logging.getLogger("accounts").debug("Confirmed %s: /accounts/profile/ 100%%", "ann")

    assert "DEBUG accounts Confirmed ann: /accounts/profile/ 100%\n" in written.getvalue()


# What Python itself writes to stderr -----------------------------------------------------------

PROGRAM = """
import threading, warnings
import django
django.setup()
import project.urls  # as a server does at its first request

def fail():
    raise ValueError("GET /accounts/email/confirm/s3cret-t0ken/")

def leave():
    raise SystemExit

for target in (fail, leave):
    thread = threading.Thread(target=target, name="worker-7")
    thread.start()
    thread.join()
warnings.warn("this will be gone")
"""


def test_errors_that_end_threads_and_warnings_are_lines_without_secrets() -> None:
    # The `.env` of `make run` turns DEBUG on.
    environment = PRODUCTION | {"DJANGO_SETTINGS_MODULE": "project.settings", "DJANGO_DEBUG": "off"}
    ended = fork_server.run("-c", PROGRAM, env=environment)

    failed, warned = (json.loads(line) for line in ended.stderr.splitlines())
    assert (failed["logger"], failed["level"]) == ("project.logs", "ERROR")
    assert failed["message"] == "The thread worker-7 ended with an error"
    assert failed["exception"].endswith("ValueError: GET /accounts/email/confirm/[hidden]/")
    assert (warned["logger"], warned["level"]) == ("py.warnings", "WARNING")
    assert "UserWarning: this will be gone\n" in warned["message"]
