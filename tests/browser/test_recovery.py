"""Signing up and recovering an account by mail, in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail
from playwright.sync_api import Page, expect

from tests.browser.test_accounts import sign_in, sign_up
from tests.factories import stored_items
from tests.mailbox import link

pytestmark = pytest.mark.browser

NEW_PASSWORD = "another good password"


def follow_link(page: Page) -> None:
    """Follow the link in the last mail."""
    page.goto(link(mail.outbox.pop()))


def test_a_user_signs_up_by_mail_and_recovers_username_and_password(
    page: Page, settings: Any
) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = True
    sign_up(page, "ann", "ann@example.org")
    expect(page).to_have_url(re.compile("/accounts/signup/sent/$"))
    follow_link(page)
    assert stored_items() == {}
    page.get_by_role("button", name="Create my account").click()
    expect(page.get_by_role("status")).to_contain_text("Your account is ready")
    sign_in(page, "ann")
    page.goto("/accounts/profile/")
    expect(page.get_by_role("main")).to_contain_text("Confirmed")
    page.get_by_role("button", name="Sign out").click()

    page.goto("/accounts/login/")
    page.get_by_role("link", name="Forgot your username?").click()
    page.get_by_label("Email address").fill("ann@example.org")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Check your email")
    assert "\n\nann\n\n" in mail.outbox.pop().body

    page.get_by_role("main").get_by_role("link", name="Sign in").click()
    page.get_by_role("link", name="Forgot your password?").click()
    page.get_by_label("Email address").fill("ann@example.org")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Check your email")
    follow_link(page)
    # The address of the form tells nobody the link.
    expect(page).to_have_url(re.compile("/set-password/$"))
    page.get_by_label("New password", exact=True).fill(NEW_PASSWORD)
    page.get_by_label("New password confirmation").fill(NEW_PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("The new password is set")

    page.get_by_role("main").get_by_role("link", name="Sign in").click()
    page.get_by_label("Username or email address").fill("ann@example.org")
    page.get_by_label("Password").fill(NEW_PASSWORD)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r":\d+/$"))


def test_a_user_requests_another_link_and_confirms_the_email_address(page: Page) -> None:
    sign_up(page, "ann", "ann@example.org")
    page.get_by_role("link", name="Confirm your email address").click()
    expect(page.get_by_role("main")).to_contain_text("Not confirmed")
    page.get_by_role("button", name="Send the link again").click()
    expect(page.get_by_role("status")).to_contain_text("The link was sent")

    follow_link(page)
    page.get_by_role("button", name="Confirm my email address").click()

    expect(page.get_by_role("status")).to_contain_text("Your email address is confirmed")
    expect(page.get_by_role("main")).not_to_contain_text("Not confirmed")
    expect(page.get_by_role("button", name="Send the link again")).to_have_count(0)
