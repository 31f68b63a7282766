"""The Content Security Policy blocks nothing of the site and its toolbar in a real browser."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_invoices import totals, write
from tests.commands import ROOT
from tests.engines import free_port, is_listening
from tests.factories import make_user
from tests.invoice_factories import DAY, issued
from tests.production import PRODUCTION, settings_of
from tests.programs import start
from tests.waiting import wait_until

pytestmark = pytest.mark.browser


def heard(page: Page) -> list[str]:
    """What is said on the console of a page from now on."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


def test_the_content_security_policy_allows_pages_scripts_and_the_pdf_viewer(
    whole_browser: Browser, open_page: Callable[..., Page]
) -> None:
    user = make_user(username="ann", full_name="Ann Example")
    issued(user.pk)
    page = open_page(whole_browser, user)
    said = heard(page)

    write(page, [("Design", "1", "1200", "19")])
    assert totals(page)[-1] == "€1,428.00"
    assert page.evaluate("getComputedStyle(document.querySelector('main')).flexGrow") == "1"
    assert said == []

    viewer = page.goto(f"/invoices/{DAY.year}-000001.pdf")
    assert viewer is not None
    assert viewer.headers["content-type"] == "application/pdf"
    # Chromium's viewer is an extension: older versions embed it in the page, newer ones in a frame.
    # If a policy keeps it out, there is an error page.
    page.wait_for_function(
        "document.body.style.height === '100%' || "
        "document.querySelector('link[href^=\"chrome-extension:\"]') !== null"
    )
    assert [text for text in said if "Policy" in text] == []


def test_pages_are_styled_and_scripts_run_with_files_of_another_host(
    browser: Browser, open_page: Callable[..., Page], site: str, settings: Any
) -> None:
    host = site.replace("127.0.0.1", "localhost")
    # http is for development only.
    named = settings_of(PRODUCTION | {"DJANGO_DEBUG": "on", "DJANGO_STATIC_HOST": host}, ROOT)
    for name in ("STATIC_URL", "ANSWER_HEADERS", "REQUESTING_POLICY"):
        setattr(settings, name, named[name])
    page = open_page(browser, make_user(full_name="Ann Example"))
    said = heard(page)
    loaded: list[str] = []
    page.on("response", lambda answer: loaded.append(answer.url))

    write(page, [("Design", "1", "1200", "19")])

    expect(page.locator(".totals dd").last).to_have_text("€1,428.00")
    assert page.evaluate("getComputedStyle(document.querySelector('main')).flexGrow") == "1"
    assert page.evaluate("document.querySelector('.brand img').naturalWidth") > 0
    assert said == []
    files = [url for url in loaded if "/static/" in url]
    assert len(files) >= 3
    assert all(url.startswith(host) for url in files)


@pytest.fixture
def development(engine: str) -> Iterator[str]:
    """The site served as `make run` does, debug toolbar included; its address."""
    port = free_port()
    environment = os.environ | {"DJANGO_DEBUG_TOOLBAR": "on", "AWS_ENDPOINT_URL_DYNAMODB": engine}
    command = ("manage.py", "runserver", "--noreload", f"127.0.0.1:{port}")
    with start(*command, env=environment) as server:
        try:
            wait_until(lambda: server.poll() is not None or is_listening(port))
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def test_the_panel_opens_under_the_content_security_policy(
    browser: Browser, open_page: Callable[..., Page], development: str
) -> None:
    page = open_page(browser, base_url=development)
    said = heard(page)
    # The site looks for an unknown session too.
    page.context.add_cookies([{"name": "sessionid", "value": "x" * 32, "url": development}])

    answer = page.goto("/")
    page.locator("#djShowToolBarButton").click()
    panels = page.locator("#djDebugPanelList li[id^=djdt]")
    expect(panels.first).to_contain_text("DynamoDB")
    panels.first.locator("a").click()

    expect(page.locator("#DynamoPanel td").first).to_have_text("GetItem")
    assert answer is not None
    assert 'desc="1 request, ' in answer.headers["server-timing"]
    assert said == []
