"""The debug toolbar in a real browser, under the Content Security Policy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.development import development_server

pytestmark = pytest.mark.browser


@pytest.fixture
def development(engine: str) -> Iterator[str]:
    with development_server(engine) as address:
        yield address


def test_the_panel_opens_under_the_content_security_policy(
    browser: Browser, development: str
) -> None:
    context = browser.new_context(base_url=development)
    context.set_default_timeout(60_000)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    # The site looks for an unknown session too.
    context.add_cookies([{"name": "sessionid", "value": "x" * 32, "url": development}])

    answer = page.goto("/")
    page.locator("#djShowToolBarButton").click()
    panels = page.locator("#djDebugPanelList li[id^=djdt]")
    expect(panels.first).to_contain_text("DynamoDB")
    panels.first.locator("a").click()

    expect(page.locator("#DynamoPanel td").first).to_have_text("GetItem")
    assert answer is not None
    assert 'desc="1 request, ' in answer.headers["server-timing"]
    assert said == []
    context.close()
