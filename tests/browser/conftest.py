"""Fixtures of the browser tests: Chromium against the site on a real port."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test.testcases import LiveServerThread
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from accounts.models import User
from tests import pages

# The default of five seconds is too short for a busy machine.
expect.set_options(timeout=60_000)

QUIET = [
    # A page lives for a moment: to optimize its scripts costs more than it saves.
    "--js-flags=--no-opt",
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


#: Without windows and PDF viewer. It takes a third of the CPU time.
SHELL = "chromium-headless-shell"
WHOLE = ("chromium", "chromium-browser", "google-chrome")


# Per package, not per session: while Playwright runs its event loop, Django's commands refuse to
# run in this thread, because they seem to be called from asynchronous code.
@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright, pytest.MonkeyPatch.context() as patch:
        # Its event loop is in this thread.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "on")
        yield playwright


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with _launched(playwright, SHELL, *WHOLE) as browser:
        yield browser


@pytest.fixture
def whole_browser(playwright: Playwright) -> Iterator[Browser]:
    """The whole browser, with its PDF viewer."""
    with _launched(playwright, *WHOLE) as browser:
        yield browser


@contextmanager
def _launched(playwright: Playwright, *names: str) -> Iterator[Browser]:
    program = _found(names, playwright)
    browser = playwright.chromium.launch(executable_path=program, args=QUIET)
    yield browser
    browser.close()


def _found(names: tuple[str, ...], playwright: Playwright) -> str:
    """The first of these programs that is installed, or the Chromium that Playwright installed."""
    for name in names:
        if found := shutil.which(name):
            return found
    if Path(playwright.chromium.executable_path).exists():
        return playwright.chromium.executable_path
    absent = "There is no Chromium: install it, or run `.venv/bin/playwright install chromium`."
    if os.environ.get("CI"):
        pytest.fail(absent)
    pytest.skip(absent)


@contextmanager
def served(static_handler: Any) -> Iterator[str]:
    """Serve the project of the settings; yields the address."""
    server = LiveServerThread("127.0.0.1", static_handler, connections_override={})
    server.daemon = True
    server.start()
    server.is_ready.wait()
    if server.error:
        raise server.error
    yield f"http://127.0.0.1:{server.port}"
    server.terminate()


@pytest.fixture
def site(engine: str, settings: Any) -> Iterator[str]:
    """The site, served with its static files; its address."""
    # WhiteNoise serves the static files, as in production.
    with served(lambda application: application) as settings.ACCOUNTS_SITE_ORIGIN:
        yield settings.ACCOUNTS_SITE_ORIGIN


@pytest.fixture
def open_page(site: str) -> Iterator[Callable[..., Page]]:
    """Opens a page in a new context of a browser, in which a user may be signed in."""
    with ExitStack() as stack:

        def opened(browser: Browser, user: User | None = None, **options: Any) -> Page:
            context = browser.new_context(**{"base_url": site, "locale": "en-GB"} | options)
            stack.callback(context.close)
            context.set_default_timeout(60_000)
            if user:
                let_in(context, site, user)
            return context.new_page()

        yield opened


def let_in(context: BrowserContext, site: str, user: User) -> None:
    """Sign in without the sign-in page."""
    cookie = pages.let_in(user).cookies[settings.SESSION_COOKIE_NAME]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": site}])


@pytest.fixture
def page(open_page: Callable[..., Page], browser: Browser) -> Page:
    return open_page(browser)
