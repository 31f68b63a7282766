"""The language switch, and the pages in Japanese."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from accounts.models import User
from accounts.services import edit_profile
from invoices.store.lists import all_invoices
from tests.browser.test_accounts import press
from tests.browser.test_axe import faults
from tests.browser.test_invoices import TODAY, stored_totals, totals
from tests.clocks import hold_the_day
from tests.factories import make_user

pytestmark = pytest.mark.browser


def test_the_language_switch_works_by_keyboard_and_without_scripts(
    open_page: Callable[..., Page], browser: Browser
) -> None:
    user = make_user()
    page = open_page(browser, user, java_script_enabled=False)
    page.goto("/accounts/email/")

    press(page, "button", "日本語")

    expect(page).to_have_url(re.compile("/accounts/email/$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("メールアドレスの変更")
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    expect(page.get_by_role("button", name="English")).to_have_attribute("lang", "en")
    assert User.get(user.pk).language == "ja"
    press(page, "button", "English")
    expect(page.get_by_role("heading", level=1)).to_have_text("Change email address")


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
