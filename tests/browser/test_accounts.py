"""An account in a real browser, from the sign-up to the deletion."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from dynamo._internal.client import deadline
from tests.factories import PASSWORD, assert_guards_match_users, guard_owner, make_user
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy, through

pytestmark = pytest.mark.browser

#: The start page, on any port.
HOME = re.compile(r":\d+/$")


def sign_up(page: Page, username: str, email: str) -> None:
    page.goto("/accounts/signup/")
    expect(page.locator("[name=time_zone]")).to_have_value(re.compile("."))
    page.get_by_label("Username").fill(username)
    page.get_by_label("Email address").fill(email)
    page.get_by_label("Full name").fill("Ann Example")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()


def sign_in(page: Page, who: str) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Username or email address").fill(who)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_a_user_signs_up_changes_the_email_address_signs_in_by_it_and_deletes_the_account(
    page: Page, settings: Any
) -> None:
    settings.ACCOUNTS_EMAIL_CHANGE = "immediate"
    page.goto("/")
    page.get_by_role("main").get_by_role(
        "link", name=re.compile("account|sign up", re.I)
    ).first.click()
    sign_up(page, "ann", "ann@example.org")
    expect(page).to_have_url(HOME)
    expect(page.get_by_role("status")).to_contain_text("Welcome")

    page.get_by_role("link", name="Add your business details").click()
    page.get_by_label("Business name").fill("Ann Ltd")
    page.get_by_role("button", name="Save details").click()
    expect(page.get_by_role("status")).to_contain_text("saved")
    expect(page.get_by_label("Business name")).to_have_value("Ann Ltd")

    page.get_by_role("link", name="Account", exact=True).click()
    page.get_by_role("link", name="Change email address").click()
    page.get_by_label("Email address").fill("Ann@New.example")
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_role("button", name=re.compile("email")).click()
    expect(page.get_by_role("main")).to_contain_text("Ann@New.example")

    page.get_by_role("button", name="Sign out").click()
    sign_in(page, "ann@new.EXAMPLE")
    expect(page).to_have_url(HOME)

    page.get_by_role("link", name="ann", exact=True).click()
    page.get_by_role("link", name="Delete account").click()
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_role("button", name="Delete my account").click()
    expect(page.get_by_role("status")).to_contain_text("deleted")
    assert guard_owner("userName#ann") is None
    assert_guards_match_users()


def test_taken_values_have_errors_at_their_fields_and_nothing_typed_is_lost(page: Page) -> None:
    make_user(username="ann")
    make_user(email="bob@example.org")

    sign_up(page, "ANN", "Bob@example.org")

    name = page.get_by_label("Username")
    expect(name).to_be_focused()
    expect(name).to_have_value("ANN")
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Full name")).to_have_value("Ann Example")
    expect(page.get_by_text("This username is taken.")).to_be_visible()
    expect(page.get_by_text("This email address belongs to another account.")).to_be_visible()
    expect(page.get_by_label("Password", exact=True)).to_have_value("")


def test_a_double_click_makes_one_account(page: Page) -> None:
    page.goto("/accounts/signup/")
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Email address").fill("ann@example.org")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Create account").dblclick()

    expect(page).to_have_url(HOME)
    assert_guards_match_users()


def test_going_back_after_the_sign_up_shows_the_account_not_the_form(page: Page) -> None:
    sign_up(page, "ann", "ann@example.org")
    expect(page).to_have_url(HOME)

    page.go_back()

    expect(page).to_have_url(HOME)
    assert_guards_match_users()


def test_a_form_left_open_in_another_tab_says_that_it_was_not_accepted(page: Page) -> None:
    other_tab = page.context.new_page()
    other_tab.goto("/accounts/signup/")
    sign_up(page, "ann", "ann@example.org")

    other_tab.get_by_label("Username").fill("bob")
    other_tab.get_by_label("Email address").fill("bob@example.org")
    other_tab.get_by_label("Password", exact=True).fill(PASSWORD)
    other_tab.get_by_label("Password confirmation").fill(PASSWORD)
    other_tab.get_by_role("button", name="Create account").click()

    expect(other_tab.get_by_role("heading", name="This form could not be accepted")).to_be_visible()
    expect(other_tab.get_by_text("you signed in or out in another tab")).to_be_visible()
    assert guard_owner("userName#bob") is None


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_scrolls_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    anonymous = ["/", "/accounts/signup/", "/accounts/login/", "/nowhere/"]
    own = ["/", "/accounts/profile/"] + [
        f"/accounts/{name}/" for name in ("username", "email", "password_change", "delete")
    ]

    def widths(paths: list[str]) -> dict[str, int]:
        found = {}
        for path in paths:
            page.goto(path)
            found[path] = page.evaluate("document.documentElement.scrollWidth")
        return found

    before = widths(anonymous)
    sign_up(page, "n" * 150, f"{'a' * 64}@{'b' * 60}.{'c' * 60}.example")
    expect(page).to_have_url(HOME)
    after = widths(own)

    assert max(before.values()) <= width
    assert max(after.values()) <= width


def test_a_sign_up_without_an_answer_is_completed_by_sending_the_form_again(
    page: Page, engine: str
) -> None:
    unanswered = Answer(500, "InternalServerError", carried_out=True)
    with FaultProxy(engine) as proxy, pytest.MonkeyPatch.context() as patch:
        patch.setattr(deadline, "OPERATION_SECONDS", 0.3)
        proxy.plan("TransactWriteItems", unanswered, times=1_000_000)
        with through(proxy):
            sign_up(page, "ann", "ann@example.org")
            expect(page.get_by_role("alert")).to_contain_text("Send the form again")
    expect(page.get_by_label("Username")).to_have_value("ann")
    expect(page.get_by_label("Password", exact=True)).to_have_value("")
    assert guard_owner("userName#ann")

    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("status")).to_contain_text("Welcome")
    assert_guards_match_users()
