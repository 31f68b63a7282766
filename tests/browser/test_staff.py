"""The staff pages in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from accounts.sessions import services as sessions
from locks._internal.lock import Lock
from sequences._internal.counters import next_value
from tests.browser.test_invoices import let_in
from tests.factories import PASSWORD, make_user
from tests.staff.scenes import logged_actions, make_staff, stored_report

pytestmark = pytest.mark.browser


def confirm(page: Page, reason: str, button: str) -> None:
    page.get_by_label("Reason").fill(reason)
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_role("button", name=button).click()


def test_staff_find_and_deactivate_an_account_break_a_lock_and_read_the_audit_log(
    page: Page, site: str
) -> None:
    bob = make_user(username="bob")
    sessions.begin(bob, browser="Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", address="::1")
    Lock("nightly", lease_seconds=600, owner="worker-7").acquire()
    next_value("a-counter-of-a-name-without-a-place-to-break-it" * 3)
    let_in(page.context, site, make_staff(username="grace"))

    page.goto("/")
    page.get_by_role("link", name="Staff", exact=True).click()
    page.get_by_label("Find an account").fill("BOB")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("bob")
    page.get_by_role("link", name="End the session of Firefox").click()
    confirm(page, "Lost device", "End the session")
    expect(page.get_by_text("There are no sessions.")).to_be_visible()
    page.get_by_role("link", name="Deactivate…").click()
    confirm(page, "Spam", "Deactivate")
    expect(page.get_by_role("status")).to_have_text("The account is deactivated.")
    assert not User.get(bob.pk).is_active

    page.get_by_role("link", name="Back to staff").click()
    expect(page.get_by_text("manage.py storereport statistics")).to_be_visible()
    stored_report("statistics")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/staff/")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("link", name="nightly").click()
    expect(page.get_by_text("worker-7")).to_be_visible()
    confirm(page, "Stuck", "Break the lock")
    expect(page.get_by_text("there is nothing to break")).to_be_visible()

    page.goto("/staff/record/")
    rows = page.get_by_role("row").all_inner_texts()
    assert [re.sub(r"\s+", " ", row).count("grace") for row in rows] == [0, 1, 1, 1]
    assert "Broke a lock" in rows[1]
    assert logged_actions() == ["endSession", "deactivate", "breakLock"]
