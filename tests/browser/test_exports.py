"""Exports that are stored in S3, in a real browser: without scripts, and what axe says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from playwright.sync_api import Browser, Page, expect

from accounts.models import User
from invoices.output import exports as stored_exports
from invoices.output.exports import Export
from invoices.pages import downloads
from outbox.models import TaskItem
from tests.browser.test_axe import seen
from tests.factories import make_user
from tests.invoice_factories import DAY, issued, put_invoice, stored_invoices
from tests.registration import RunTasks
from uploads import s3 as uploads_s3

pytestmark = pytest.mark.browser

START = f"/invoices/{DAY.year}.zip"


@pytest.fixture(autouse=True)
def _exporting(s3_url: str, bucket: str, settings: Any, worker: RunTasks) -> None:
    settings.EXPORTS_BUCKET = bucket
    retry = {stored_exports.make.module_path: {"attempts": 1}}
    settings.TASKS["default"]["OPTIONS"]["RETRY"] = retry
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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A page that refreshes itself while axe looks at it would fail on a slow machine.
    monkeypatch.setattr(downloads, "REFRESH_SECONDS", 3600)
    export = Export(ann.pk, "zip", DAY.year)
    ready = stored_exports.start(export)
    worker()
    put_invoice(stored_invoices(ann.pk)[0], lines={"S": "none"})
    failed = stored_exports.start(export)
    worker()
    late = stored_exports.start(export)
    for item in TaskItem.scan():
        item.change(enqueued_at=item.enqueued_at - stored_exports.LATE)
    cache.delete(f"exports.{ann.pk}")  # expired
    states = {
        "ready": ready,
        "failed": failed,
        "late": late,
        "preparing": stored_exports.start(export),
    }
    assert [stored_exports.find(id_)[1] for id_ in states.values()] == [*states]

    pages = [START, *(f"/invoices/exports/{id_}/" for id_ in states.values())]
    assert seen(open_page(browser, ann, reduced_motion="reduce"), pages) == []
