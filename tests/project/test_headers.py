"""The headers of every answer of production."""

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as site
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path, reverse

from accounts.emails import links
from accounts.models import User
from tests.commands import ROOT
from tests.factories import PASSWORD, make_user
from tests.faults.proxy import NOWHERE, through
from tests.invoice_factories import DAY, issued
from tests.production import HOST
from tests.project.test_url_map import ROWS

pytestmark = pytest.mark.usefixtures("production")

ALWAYS = site.ANSWER_HEADERS | {
    "Content-Security-Policy": (
        "base-uri 'none'; connect-src 'none'; default-src 'none'; font-src 'none'; "
        "form-action 'self'; frame-ancestors 'none'; img-src 'self'; object-src 'none'; "
        "script-src 'self'; style-src 'self'"
    )
}
HSTS = "max-age=31536000"
LOGIN = "/accounts/login/"


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a bug")


def cacheable(request: HttpRequest) -> HttpResponse:
    return HttpResponse(headers={"Cache-Control": "max-age=60"})


def personal(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(request.user), headers={"Cache-Control": "public, max-age=60"})


urlpatterns = [
    path("broken/", broken),
    path("cacheable/", cacheable),
    path("personal/", personal),
    path("", include("project.urls")),
]


def visitor(*, strict: bool = True) -> Client:
    """A browser; unless it is `strict`, its CSRF tokens are not checked."""
    return Client(enforce_csrf_checks=strict, raise_request_exception=False, headers={"host": HOST})


@pytest.fixture
def browser() -> Client:
    return visitor()


def get(client: Client, path: str, **more: Any) -> Any:
    return client.get(path, secure=True, **more)


def assert_whole(
    response: Any, *, over_tls: bool = True, is_file: bool = False, asks: bool = False
) -> None:
    """`asks` is whether a script of the page sends requests."""
    said = {name: response.headers.get(name) for name in ALWAYS}
    if is_file:
        # A page may load it from another host.
        assert said.pop("Cross-Origin-Resource-Policy") == "cross-origin"
    assert said["Content-Security-Policy"]
    policy = "; ".join(sorted(said["Content-Security-Policy"].split("; ")))
    if asks:
        policy = policy.replace("connect-src 'self'", "connect-src 'none'")
    assert said | {"Content-Security-Policy": policy} == {name: ALWAYS[name] for name in said}
    assert "unsafe" not in policy
    allowed = re.findall(r"[\w-]+=\(([^)]*)\)", response.headers["Permissions-Policy"])
    assert len(allowed) > 30
    assert not any(allowed)
    assert "Server" not in response.headers
    assert "X-Powered-By" not in response.headers
    assert "Access-Control-Allow-Origin" not in response.headers
    if over_tls:
        assert response.headers["Strict-Transport-Security"] == HSTS
    for name, cookie in response.cookies.items():
        if not cookie.value:
            # Django removes the cookie of a message that was shown.
            continue
        assert cookie["secure"], name
        assert cookie["httponly"], name
        assert cookie["samesite"] == "Lax", name
        assert (cookie["path"], cookie["domain"]) == ("/", ""), name


#: Pages that do not read who is signed in.
IMPERSONAL = {"healthz", "livez", "set_language"}
#: Pages whose script asks the server.
ASKING = {"invoice_new", "invoice_new_preview", "invoice_preview_pdf"}


@pytest.mark.parametrize("signed_in", [False, True])
def test_every_url_has_the_headers_and_no_cache_keeps_a_personal_page(
    signed_in: bool, browser: Client
) -> None:
    if signed_in:
        user = make_user()
        issued(user.pk)
        browser.force_login(user)

    for name, row in ROWS.items():
        response = get(browser, reverse(name, args=row.arguments))
        # Probes are answered without TLS, too.
        probe = name in {"healthz", "livez"}
        assert_whole(response, over_tls=not probe, asks=name in ASKING)
        if name not in IMPERSONAL and response.status_code != 405:
            said = response.headers.get("Cache-Control", "").split(", ")
            assert {"private", "no-store"} <= set(said), name
        # An account downloads one export at a time.
        response.close()


def test_files_stay_in_caches_and_downloads_do_not(browser: Client) -> None:
    user = make_user()
    issued(user.pk)
    browser.force_login(user)
    page = get(browser, "/").content.decode()
    files = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert len(files) >= 3
    downloads = [f"/invoices/{DAY.year}{name}" for name in ("-000001.pdf", ".zip", ".csv")]

    for addresses, said in (
        (files, "max-age=315360000, public, immutable"),
        (downloads, "private, no-store"),
    ):
        for address in addresses:
            response = get(browser, address)
            assert response.status_code == 200
            assert response["Cache-Control"] == said
            assert_whole(response, is_file=addresses is files)
            response.close()


@pytest.mark.urls(__name__)
@pytest.mark.parametrize(
    ("page", "said"), [("cacheable/", "max-age=60"), ("personal/", "private, no-store")]
)
def test_only_personal_pages_are_kept_from_caches(browser: Client, page: str, said: str) -> None:
    browser.force_login(make_user())

    assert get(browser, f"/{page}")["Cache-Control"] == said


def bad_host(client: Client) -> Any:
    return get(client, "/", headers={"host": "elsewhere.example"})


def bad_encoding(client: Client) -> Any:
    kind = "application/x-www-form-urlencoded; charset=utf-16"
    return client.generic("POST", LOGIN, b"x", content_type=kind, secure=True)


def limited(_client: Client) -> Any:
    wrong = {"username": "nobody", "password": "not that"}
    client = visitor(strict=False)
    return [client.post(LOGIN, wrong, secure=True) for _attempt in range(11)][-1]


def out_of_reach(client: Client) -> Any:
    client.force_login(make_user())
    with through(NOWHERE), override_settings(DYNAMODB_PAGE_SECONDS=0.1):
        return get(client, "/accounts/profile/")


#: Requests, and the statuses of their answers.
REFUSED: list[tuple[Callable[[Client], Any], int]] = [
    (bad_host, 400),
    (lambda client: client.get("/", headers={"host": "elsewhere.example"}), 400),
    (bad_encoding, 400),
    (lambda _: visitor(strict=False).post(LOGIN, {"a": "x" * 4_000_000}, secure=True), 400),
    (lambda client: client.post(LOGIN, {}, secure=True), 403),
    (lambda client: get(client, "/nowhere/"), 404),
    (lambda client: get(client, "/static/nothing.css"), 404),
    (lambda client: get(client, "/invoices/?year=x"), 302),
    (lambda client: get(client, "/accounts/logout/"), 405),
    (lambda client: get(client, "/accounts/confirm/x/"), 410),
    (limited, 429),
    (lambda client: get(client, "/broken/"), 500),
    (out_of_reach, 503),
    (lambda client: client.get("/"), 301),
]


@pytest.mark.urls(__name__)
def test_every_refusal_and_failure_has_the_headers() -> None:
    for number, (ask, status) in enumerate(REFUSED):
        response = ask(visitor())

        assert (number, response.status_code) == (number, status)
        assert_whole(response, over_tls=response.wsgi_request.is_secure() and ask is not bad_host)


class Broken:
    """A middleware with a bug, before or after the page is made."""

    when = "before"

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if self.when == "after":
            self._get_response(request)
        raise RuntimeError("a bug")


#: The position below the middleware that adds the headers.
OUTERMOST = 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_error_in_a_middleware_is_answered_with_the_page_500_and_logged_once(
    settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    monkeypatch.setattr(Broken, "when", when)
    usual = site.MIDDLEWARE
    for position in range(OUTERMOST, len(usual) + 1):
        settings.MIDDLEWARE = [*usual[:position], f"{__name__}.Broken", *usual[position:]]
        browser = visitor()
        caplog.clear()

        shown = get(browser, LOGIN)
        lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
        browser.cookies["__Host-csrftoken"] = "a" * 32
        sent = bad_encoding(browser)

        assert (position, shown.status_code) == (position, 500)
        assert "Something went wrong" in shown.content.decode()
        assert [line.name for line in lines] == ["django.request"]
        assert lines[0].exc_info
        is_form_read = position > usual.index("project.middleware.FormMiddleware")
        assert (position, sent.status_code) == (position, 400 if is_form_read else 500)
        has_tls = position > usual.index("django.middleware.security.SecurityMiddleware")
        for response in (shown, sent):
            assert_whole(response, over_tls=has_tls)


def test_cookies_have_names_that_no_other_host_can_set() -> None:
    user = make_user()
    client = visitor(strict=False)

    client.get(LOGIN, secure=True)
    values = {"username": user.username, "password": PASSWORD}
    response = client.post(LOGIN, values, secure=True)

    names = {f"__Host-{name}" for name in ("account", "csrftoken", "known", "sessionid")}
    assert set(client.cookies) - {"messages"} == names
    assert_whole(response)
    ended = client.post("/accounts/logout/", secure=True).cookies["__Host-sessionid"]
    assert (ended["max-age"], ended["secure"]) == (0, True)
    token = links.make("confirm", user.pk, str(User.get(user.pk).confirmation_id))
    confirmed = visitor(strict=False).post(f"/accounts/confirm/{token}/", secure=True)
    assert "messages" in confirmed.cookies
    assert_whole(confirmed)


def test_no_template_contains_what_the_policy_forbids() -> None:
    inline = re.compile(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)", re.I)
    for folder in (ROOT / "templates", *ROOT.glob("*/templates")):
        for template in folder.rglob("*.html"):
            assert not inline.search(template.read_text(encoding="utf-8")), template
