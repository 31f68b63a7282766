"""The Content Security Policy blocks nothing of the site in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser.test_invoices import let_in, totals, write
from tests.factories import make_user
from tests.invoice_factories import DAY, issued

pytestmark = pytest.mark.browser


def test_the_content_security_policy_allows_pages_scripts_and_the_pdf_viewer(
    whole_browser: Browser, site: str
) -> None:
    user = make_user(username="ann", full_name="Ann Example")
    issued(user.pk)
    context = whole_browser.new_context(base_url=site, locale="en-GB")
    let_in(context, site, user)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))

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
    context.close()
