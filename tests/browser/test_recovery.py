"""Signing up by mail and recovering the username, in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail
from playwright.sync_api import Page, expect

from tests.browser.test_accounts import fill_in
from tests.factories import PASSWORD, stored_items
from tests.mailbox import link

pytestmark = pytest.mark.browser


def test_a_user_signs_up_by_mail_and_recovers_the_username(page: Page, settings: Any) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = True
    fill_in(page)
    page.get_by_role("button", name="Create account").click()
    expect(page).to_have_url(re.compile("/accounts/signup/sent/$"))
    page.goto(link(mail.outbox.pop()))
    assert stored_items() == {}
    page.get_by_role("button", name="Create my account").click()
    expect(page.get_by_role("status")).to_contain_text("Your account is ready")
    page.goto("/accounts/login/")
    page.get_by_label("Username or email address").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.goto("/accounts/profile/")
    expect(page.get_by_role("main")).to_contain_text("Confirmed")
    page.get_by_role("button", name="Sign out").click()

    page.goto("/accounts/login/")
    page.get_by_role("link", name="Forgot your username?").click()
    page.get_by_label("Email address").fill("ann@example.org")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Check your email")
    assert "\n\nann\n\n" in mail.outbox.pop().body
