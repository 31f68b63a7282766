"""Accounts in a real browser: used by keyboard, with links of mails, and with a double click."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core.mail import EmailMessage
from playwright.sync_api import Browser, Locator, Page, expect

from accounts.models import User
from accounts.sessions import services as sessions
from tests.factories import PASSWORD, assert_guards_match_users, guard_owner, stored_items
from tests.mailbox import link

pytestmark = pytest.mark.browser

NEW_PASSWORD = "another horse battery"
MOST_STEPS = 60


@pytest.fixture
def person(browser: Browser, open_page: Callable[..., Page]) -> Page:
    """The page of a user who has only a keyboard, in a browser without scripts."""
    return open_page(browser, java_script_enabled=False)


def reach(page: Page, target: Locator) -> None:
    """Press Tab until `target` has the focus."""
    expect(target).to_have_count(1)
    # It is looked up once, because that takes longer than a step.
    element = target.element_handle()
    for _step in range(MOST_STEPS):
        if element.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {target}")


def enter(page: Page, label: str, text: str) -> None:
    """Replace the text of the field with that label."""
    reach(page, page.get_by_label(label, exact=True))
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type(text)


def press(page: Page, role: Any, name: str | re.Pattern[str]) -> None:
    """Press the first link or button of that name."""
    reach(page, page.get_by_role(role, name=name, exact=True).first)
    page.keyboard.press("Enter")


def test_an_account_can_be_created_used_for_an_invoice_recovered_and_deleted_by_keyboard(
    person: Page, mailoutbox: list[EmailMessage], settings: Any
) -> None:
    settings.ACCOUNTS_EMAIL_CHANGE = "immediate"
    person.goto("/")
    press(person, "link", "Create an account")
    expect(person).to_have_url(re.compile("/signup/$"))
    enter(person, "Username", "ann")
    enter(person, "Email address", "ann@example.org")
    enter(person, "Password", PASSWORD)
    enter(person, "Password confirmation", PASSWORD)
    person.keyboard.press("Enter")
    expect(person.get_by_role("status")).to_contain_text("Welcome")

    press(person, "link", "Add your business details")
    enter(person, "Business name", "Ann Ltd")
    press(person, "button", "Save details")
    expect(person.get_by_role("status")).to_contain_text("saved")

    press(person, "link", "Invoices")
    press(person, "link", "New invoice")
    enter(person, "Customer’s name", "Bob")
    enter(person, "Description", "Work")
    enter(person, "Unit price", "100")
    enter(person, "VAT %", "19")
    press(person, "button", "Issue the invoice")
    expect(person.get_by_role("status")).to_contain_text("was issued")

    press(person, "link", "ann")
    press(person, "link", "Change email address")
    enter(person, "Email address", "ann@new.example")
    enter(person, "Current password", PASSWORD)
    press(person, "button", "Change email address")
    expect(person.get_by_role("main")).to_contain_text("ann@new.example")
    assert guard_owner("email#ann@example.org") is None

    user = User.named("ann")
    sessions.begin(user, browser="Another browser", address="192.0.2.7")
    person.goto("/accounts/sessions/")
    expect(person.get_by_role("main")).to_contain_text("192.0.2.7")
    press(person, "button", re.compile(r"End .* 192\.0\.2\.7"))
    expect(person.get_by_role("main")).not_to_contain_text("192.0.2.7")

    press(person, "button", "Sign out")
    press(person, "link", "Sign in")
    press(person, "link", "Forgot your password?")
    enter(person, "Email address", "ann@new.example")
    person.keyboard.press("Enter")
    expect(person).to_have_url(re.compile("/password_reset/done/$"))
    person.goto(link(mailoutbox[-1]))
    enter(person, "New password", NEW_PASSWORD)
    enter(person, "New password confirmation", NEW_PASSWORD)
    person.keyboard.press("Enter")
    expect(person).to_have_url(re.compile("/reset/done/$"))
    press(person, "link", "Sign in")
    enter(person, "Username or email address", "ann@NEW.example")
    enter(person, "Password", NEW_PASSWORD)
    person.keyboard.press("Enter")
    expect(person).to_have_url(re.compile(r":\d+/$"))

    press(person, "link", "ann")
    press(person, "link", "Delete account…")
    enter(person, "Current password", NEW_PASSWORD)
    press(person, "button", "Delete my account")
    expect(person.get_by_role("status")).to_contain_text("deleted")
    assert stored_items() == {}


def test_the_first_tab_key_leads_to_a_link_that_skips_the_header(person: Page) -> None:
    person.goto("/accounts/profile/")
    person.goto("/")

    person.keyboard.press("Tab")
    skip = person.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    person.keyboard.press("Enter")
    person.keyboard.press("Tab")

    expect(person.get_by_role("main").get_by_role("link").first).to_be_focused()


def test_the_sample_on_the_start_page_can_be_read_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/")

    # Its smallest letters are 9 pixels high.
    scale = page.locator(".welcome img").evaluate(
        "img => getComputedStyle(img).objectFit === 'none' ? 1 : img.width / img.naturalWidth"
    )
    assert scale > 0.9


def test_a_double_click_makes_one_account_and_going_back_shows_it_not_the_form(page: Page) -> None:
    page.goto("/accounts/signup/")
    # The page's script fills it in.
    expect(page.locator("[name=time_zone]")).to_have_value(re.compile("."))
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Email address").fill("ann@example.org")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Create account").dblclick()
    expect(page).to_have_url(re.compile(r":\d+/$"))

    page.go_back()

    expect(page).to_have_url(re.compile(r":\d+/$"))
    assert_guards_match_users()
