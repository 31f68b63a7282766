"""The debug toolbar in a browser, under the policy that the site has with it."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.commands import ROOT
from tests.engines import free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.browser


@pytest.fixture
def development(engine: str) -> Iterator[str]:
    """The site as `make run` serves it, on the test's engine; its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "DJANGO_DEBUG_TOOLBAR": "on",
        "AWS_ENDPOINT_URL_DYNAMODB": engine,
    }
    server = subprocess.Popen(
        [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        assert server.poll() is None
        try:
            with urllib.request.urlopen(f"{address}/livez") as answer:  # noqa: S310 - ours
                return bool(answer.status == 200)
        except urllib.error.URLError:
            return False

    try:
        wait_until(answers)
        yield address
    finally:
        server.kill()
        server.wait()


def test_the_panel_opens_and_no_policy_is_in_its_way(browser: Browser, development: str) -> None:
    context = browser.new_context(base_url=development)
    context.set_default_timeout(60_000)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    # A session that is not there is looked for all the same.
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
