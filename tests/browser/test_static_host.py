"""Static files from another host, as behind a content delivery network."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.test_invoices import let_in, write
from tests.commands import ROOT
from tests.factories import make_user
from tests.production import PRODUCTION, settings_of

pytestmark = pytest.mark.browser


def test_pages_are_styled_and_scripts_run_with_files_of_another_host(
    browser: Browser, site: str, settings: Any
) -> None:
    host = site.replace("127.0.0.1", "localhost")
    # http is for development only.
    named = settings_of(PRODUCTION | {"DJANGO_DEBUG": "on", "DJANGO_STATIC_HOST": host}, ROOT)
    for name in ("STATIC_URL", "ANSWER_HEADERS", "REQUESTING_POLICY"):
        setattr(settings, name, named[name])
    context = browser.new_context(base_url=site, locale="en-GB")
    let_in(context, site, make_user(full_name="Ann Example"))
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
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
    context.close()
