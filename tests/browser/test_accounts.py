"""What only a browser does with the pages of an account: double clicks, the back button.

The whole story of an account: tests/browser/test_keyboard.py.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.factories import PASSWORD, assert_guards_match_users

pytestmark = pytest.mark.browser

#: The start page, on any port.
HOME = re.compile(r":\d+/$")


def fill_in(page: Page) -> None:
    """Fill in the sign-up form."""
    page.goto("/accounts/signup/")
    expect(page.locator("[name=time_zone]")).to_have_value(re.compile("."))
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Email address").fill("ann@example.org")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)


def test_a_double_click_makes_one_account_and_going_back_shows_it_not_the_form(page: Page) -> None:
    fill_in(page)
    page.get_by_role("button", name="Create account").dblclick()
    expect(page).to_have_url(HOME)

    page.go_back()

    expect(page).to_have_url(HOME)
    assert_guards_match_users()
