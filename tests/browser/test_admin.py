"""The library's admin in a real browser, in a project that has nothing of the site."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import served
from tests.browser.test_axe import faults
from tests.dynamo.conftest import _settings_of_project, project
from tests.dynamo.desk.models import Booking, Clerk, Customer
from tests.dynamo.test_admin import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("engine", project.__name__)]
__all__ = ["_settings_of_project", "project"]


@pytest.fixture
def admin(browser: Browser) -> Iterator[Page]:
    """The sign-in page of the admin."""
    with served(StaticFilesHandler) as address:
        context = browser.new_context(base_url=address, locale="en-GB", reduced_motion="reduce")
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.goto("/admin/")
        yield page
        context.close()


def seen(page: Page) -> list[Any]:
    """What axe finds, except for breadcrumbs, whose links contrib.admin does not underline."""
    # Colors in transition between the two looks would have too little contrast.
    page.add_style_tag(content="* { transition: none !important; }")
    return [fault for fault in faults(page) if fault[3] != "link-in-text-block"]


def test_an_item_is_listed_found_and_edited_and_an_overtaken_edit_is_refused(admin: Page) -> None:
    Clerk.objects.create_superuser("boss", "boss@example.org", PASSWORD)
    for name in ("ann", "bob"):
        Customer.create(email=f"{name}@example.org", club="chess")
    found = seen(admin)
    admin.get_by_label("Username").fill("boss")
    admin.get_by_label("Password").fill(PASSWORD)
    admin.keyboard.press("Enter")
    admin.get_by_role("link", name="Customers").click()
    rows = admin.get_by_role("main").get_by_role("row")
    expect(rows).to_have_count(3)
    found += seen(admin)

    admin.locator("#searchbar").fill("bob@example.org")
    admin.keyboard.press("Enter")
    expect(rows).to_have_count(2)
    admin.get_by_role("link", name="bob@example.org").click()
    admin.get_by_label("Region").fill("north")
    admin.get_by_role("button", name="Save and continue editing").click()
    expect(admin.get_by_text("was changed successfully")).to_be_visible()
    bob = Customer.find(email="bob@example.org")
    assert bob.region == "north"

    bob.change(region="west")
    admin.get_by_label("Region").fill("south")
    admin.get_by_role("button", name="Save", exact=True).click()
    expect(admin.get_by_text("was changed after this page was opened")).to_be_visible()
    expect(admin.get_by_label("Region")).to_have_value("south")
    expect(admin.get_by_text("Stored now: west")).to_be_visible()
    found += seen(admin)

    admin.get_by_role("link", name="Delete").click()
    admin.get_by_role("heading", name="Are you sure?").wait_for()
    assert found + seen(admin) == []
    assert Customer.get(bob.pk).region == "west"


def test_the_key_of_a_reference_is_chosen_in_the_list_of_its_model(admin: Page) -> None:
    Clerk.objects.create_superuser("boss", "boss@example.org", PASSWORD)
    ann, bob = (Customer.create(email=f"{name}@example.org", club="chess") for name in "ab")
    admin.get_by_label("Username").fill("boss")
    admin.get_by_label("Password").fill(PASSWORD)
    admin.keyboard.press("Enter")
    admin.get_by_role("link", name="Customers").wait_for()
    admin.goto("/admin/desk/booking/add/")
    found = seen(admin)

    with admin.expect_popup() as opened:
        admin.locator("#lookup_id_customer").click()
    window = opened.value
    found += seen(window)
    window.locator("#searchbar").fill("b@example.org")
    window.keyboard.press("Enter")
    with window.expect_event("close"):
        window.get_by_role("link", name="b@example.org").click()
    expect(admin.locator("#id_customer")).to_have_value(bob.pk)
    admin.get_by_role("button", name="Save", exact=True).click()
    expect(admin.get_by_text("was added successfully")).to_be_visible()

    assert [booking.customer for booking in Booking.scan()] == [bob.pk]
    assert ann.pk != bob.pk
    assert found == []
