"""Exports that are stored in S3, in a real browser: without scripts, and what axe says."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from accounts.models import User
from invoices.output import exports as stored_exports
from invoices.output.exports import LATE_SECONDS, Export
from invoices.pages import downloads
from tests.browser.test_axe import seen
from tests.factories import make_user
from tests.invoice_factories import DAY, issued
from tests.registration import RunTasks
from uploads import s3 as uploads_s3

pytestmark = pytest.mark.browser

START = f"/invoices/{DAY.year}.zip"


@pytest.fixture(autouse=True)
def _exporting(s3_url: str, bucket: str, settings: Any, worker: RunTasks) -> None:
    settings.EXPORTS_BUCKET = bucket
    for client in (stored_exports._s3, uploads_s3.client):
        client.reset()


@pytest.fixture
def ann(engine: str) -> User:
    user = make_user(username="ann")
    issued(user.pk)
    return user


def test_without_scripts_the_page_shows_the_file_when_it_is_ready(
    open_page: Callable[..., Page], browser: Browser, ann: User, worker: RunTasks
) -> None:
    page = open_page(browser, ann, java_script_enabled=False)

    page.goto(f"/invoices/?year={DAY.year}")
    page.get_by_role("link", name="PDFs (ZIP)").click()
    page.get_by_role("button", name="Create the file").click()
    expect(page.get_by_text("The file is being created.")).to_be_visible()
    worker()
    link = page.get_by_role("link", name="Download")
    expect(link).to_be_visible()

    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == f"invoices-{DAY.year}.zip"
    assert Path(download.value.path()).read_bytes().startswith(b"PK")


def test_axe_finds_nothing_serious_on_the_pages_of_exports(
    open_page: Callable[..., Page],
    browser: Browser,
    ann: User,
    worker: RunTasks,
    s3: Any,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A page that refreshes itself while axe looks at it would fail on a slow machine.
    for name in ("LEAST_REFRESH_SECONDS", "MOST_REFRESH_SECONDS"):
        monkeypatch.setattr(downloads, name, 3600)
    now = int(time.time())
    began = dict.fromkeys(("preparing", "ready", "failed"), now) | {"late": now - LATE_SECONDS}
    states = {name: Export(ann.pk, "zip", DAY.year, name, began[name]) for name in began}
    for name, stored in (("ready", states["ready"].name), ("failed", stored_exports.FAILED)):
        s3.put_object(Bucket=bucket, Key=states[name].folder + stored, Body=b"x")
    assert [stored_exports.state_of(state) for state in states.values()] == list(states)

    pages = [START, *(f"/invoices/exports/{state.token}/" for state in states.values())]
    assert seen(open_page(browser, ann, reduced_motion="reduce"), pages) == []
