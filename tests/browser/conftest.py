"""Fixtures of the browser tests: Chromium against the site on a real port."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test.testcases import LiveServerThread
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

# The default of five seconds is too short for a busy machine.
expect.set_options(timeout=60_000)

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


#: Without windows and PDF viewer. It takes a third of the CPU time.
SHELL = "chromium-headless-shell"
WHOLE = ("chromium", "chromium-browser", "google-chrome")


# Per module, not per session: while Playwright runs its event loop, Django's commands refuse to run
# in this thread, because they seem to be called from asynchronous code.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with _launched(SHELL, *WHOLE) as browser:
        yield browser


@pytest.fixture(scope="module")
def whole_browser() -> Iterator[Browser]:
    """The whole browser, with its PDF viewer."""
    with _launched(*WHOLE) as browser:
        yield browser


@contextmanager
def _launched(*names: str) -> Iterator[Browser]:
    with sync_playwright() as playwright, pytest.MonkeyPatch.context() as patch:
        # Its event loop is in this thread.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "on")
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


@pytest.fixture
def site(engine: str, settings: Any) -> Iterator[str]:
    """The site, served with its static files; its address."""
    # Static files by WhiteNoise, as in production.
    server = LiveServerThread("127.0.0.1", lambda application: application, connections_override={})
    server.daemon = True
    server.start()
    server.is_ready.wait()
    if server.error:
        raise server.error
    settings.ACCOUNTS_SITE_ORIGIN = f"http://127.0.0.1:{server.port}"
    yield settings.ACCOUNTS_SITE_ORIGIN
    server.terminate()


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    """A page in a new browser context."""
    context = browser.new_context(base_url=site, locale="en-GB")
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()
