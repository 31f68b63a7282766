"""The pages in Japanese."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from accounts.services import edit_profile
from invoices.store.lists import all_invoices
from tests.browser.test_axe import faults
from tests.browser.test_invoices import TODAY, stored_totals, totals
from tests.clocks import hold_the_day
from tests.factories import make_user

pytestmark = pytest.mark.browser


def test_a_japanese_invoice_shows_the_totals_that_are_stored(
    open_page: Callable[..., Page], browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_the_day(TODAY, monkeypatch)
    user = make_user()
    edit_profile(user, business_name="山田商店", business_address="東京都", language="ja")
    page = open_page(browser, user, reduced_motion="reduce")
    page.goto("/invoices/new/")
    page.get_by_label("請求先名").fill("田中商店")
    page.get_by_label("通貨").select_option("JPY")
    page.get_by_label("品目").fill("作業")
    page.get_by_label("単価").fill("-1234.50")
    page.get_by_label("税率").fill("10")
    promised = totals(page)
    found: list[Any] = faults(page)

    page.get_by_role("button", name="請求書を発行").click()

    expect(page.get_by_role("status")).to_contain_text("発行しました")
    [invoice] = all_invoices(user.pk, TODAY.year)
    assert invoice.language == "ja"
    assert promised == totals(page)
    assert [text.replace("￥", "¥") for text in promised] == stored_totals(invoice)
    found += faults(page)
    for address in ("/invoices/", "/accounts/profile/"):
        page.goto(address)
        found += faults(page)
        assert _is_wider_than_its_window(page) is False
    assert found == []


def _is_wider_than_its_window(page: Page) -> bool:
    page.set_viewport_size({"width": 320, "height": 700})
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))
