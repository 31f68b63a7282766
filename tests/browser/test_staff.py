"""The staff pages in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from accounts.sessions import services as sessions
from locks.lock import Lock
from tests.browser.conftest import let_in
from tests.factories import PASSWORD, make_user
from tests.staff.scenes import logged_actions, make_staff, stored_report

pytestmark = pytest.mark.browser


def confirm(page: Page, reason: str) -> None:
    page.get_by_label("Reason").fill(reason)
    page.get_by_label("password").fill(PASSWORD)
    page.locator("[type=submit]").and_(page.get_by_role("button", name=BUTTONS)).click()


BUTTONS = re.compile("Yes, I’m sure|Break the lock")


def test_staff_find_and_deactivate_an_account_break_a_lock_and_read_the_audit_log(
    page: Page, site: str
) -> None:
    bob = make_user(username="bob")
    sessions.begin(bob, browser="Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", address="::1")
    Lock("nightly", lease_seconds=600, owner="worker-7").acquire()
    let_in(page.context, site, make_staff(username="grace"))

    page.goto("/")
    page.get_by_role("link", name="Staff", exact=True).click()
    page.get_by_role("link", name="Accounts").last.click()
    page.get_by_role("searchbox").fill("BO")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="bob", exact=True).click()
    page.get_by_role("link", name="End the session of Firefox").click()
    confirm(page, "Lost device")
    expect(page.get_by_text("There are no sessions.")).to_be_visible()
    page.get_by_role("link", name="Deactivate…").click()
    confirm(page, "Spam")
    expect(page.get_by_text("Deactivated the account: “bob”")).to_be_visible()
    assert not User.get(bob.pk).is_active

    page.goto("/admin/runs/statistics/")
    expect(page.get_by_text("manage.py storereport statistics")).to_be_visible()
    stored_report("statistics")
    page.reload()
    page.get_by_role("link", name="nightly").click()
    expect(page.get_by_text("worker-7")).to_be_visible()
    confirm(page, "Stuck")
    expect(page.get_by_text("there is nothing to break")).to_be_visible()

    page.goto("/admin/record/")
    rows = page.get_by_role("row").all_inner_texts()
    assert [re.sub(r"\s+", " ", row).count("grace") for row in rows] == [0, 1, 1, 1]
    assert "Broke a lock" in rows[1]
    assert logged_actions() == ["endSession", "deactivate", "breakLock"]
