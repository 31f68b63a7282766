"""A real browser against the site on a real port."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.test.testcases import LiveServerThread
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

# Else five seconds, which a machine under load may stand still for.
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


#: Without windows, and without what shows a PDF: it computes a third as long.
SHELL = "chromium-headless-shell"
WHOLE = ("chromium", "chromium-browser", "google-chrome")


# Not for the session: while Playwright runs, its event loop makes Django's commands, which other
# modules call in this thread, believe that they are called from asynchronous code.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with _launched(SHELL, *WHOLE) as browser:
        yield browser


@pytest.fixture(scope="module")
def whole_browser() -> Iterator[Browser]:
    """As people have it, with its viewer of PDFs."""
    with _launched(*WHOLE) as browser:
        yield browser


@contextmanager
def _launched(*names: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        program = _found(names, playwright)
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield browser
        browser.close()


def _found(names: tuple[str, ...], playwright: Playwright) -> str:
    """The first of these Chromiums that the machine has, else the one that Playwright loaded."""
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
    server = LiveServerThread("127.0.0.1", StaticFilesHandler, connections_override={})
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
    """A fresh visitor."""
    context = browser.new_context(base_url=site, locale="en-GB")
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()
