"""Exports that are made in the background and stored in S3."""

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
import urllib3
from django.core.cache import cache
from django.test import Client

from accounts.models import User
from invoices.output import exports as stored_exports
from invoices.output.exports import LINK_SECONDS, Export
from invoices.tasks import delete_address_book
from outbox import TaskContext
from outbox.models import RECORD, TaskItem
from tests.factories import PASSWORD, make_user
from tests.faults.kinds import DropReply
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import DAY, issued, put_invoice, stored_invoices
from tests.pages import Page, let_in
from tests.policies import statements
from tests.registration import RunTasks
from tests.session_maps import forget_password_check
from tests.uploads.s3_proxy import S3Proxy, through

pytestmark = pytest.mark.usefixtures("engine")

YEAR = DAY.year
CSV = f"/invoices/{YEAR}.csv"
ZIP = f"/invoices/{YEAR}.zip"
JSON = "/accounts/export/"
#: Of the last attempt of a task.
CONTEXT = TaskContext(task_result=cast(Any, None))


@pytest.fixture(scope="module")
def _modules_storage(s3_url: str) -> Iterator[S3Proxy]:
    # One for the module, as it takes a client of its own, which is slow to make.
    with S3Proxy(s3_url) as proxy, through(proxy.url):
        stored_exports._s3.reset()
        yield proxy
    stored_exports._s3.reset()


@pytest.fixture
def storage(_modules_storage: S3Proxy) -> S3Proxy:
    """A proxy before S3, through which everything goes."""
    _modules_storage.forget()
    return _modules_storage


@pytest.fixture(autouse=True)
def _exporting(storage: S3Proxy, bucket: str, settings: Any, worker: RunTasks) -> None:
    """The site with a bucket for exports."""
    settings.EXPORTS_BUCKET = bucket
    retry = {stored_exports.make.module_path: {"attempts": 1}}
    settings.TASKS["default"]["OPTIONS"]["RETRY"] = retry


@pytest.fixture
def browser(ann: User, client: Client) -> Client:
    """Ann's browser. She has three invoices."""
    for _number in range(3):
        issued(ann.pk)
    return client


def started(browser: Client, url: str = CSV) -> str:
    """Start an export, by default of the quickest file. Returns the address of its page."""
    response = browser.post(url)
    assert response.status_code == 302
    return str(response["Location"])


def enqueued() -> list[dict[str, Any]]:
    """The exports whose tasks wait, in order."""
    waiting = [item for item in TaskItem.scan() if item.sort != RECORD]
    return [item.arguments[0][0] for item in sorted(waiting, key=lambda item: item.enqueued_at)]


def pass_time(by: timedelta) -> None:
    """Let all tasks be older."""
    for item in TaskItem.scan():
        ended = item.finished_at and item.finished_at - by
        item.change(enqueued_at=item.enqueued_at - by, finished_at=ended)


def told(browser: Client, address: str) -> str:
    return Page(browser.get(address)).text


MADE: dict[str, Callable[[bytes], bool]] = {
    CSV: lambda body: body.count(b"\r\n") == 4,
    ZIP: lambda body: body.startswith(b"PK") and body.count(b".pdf") == 6,
    JSON: lambda body: len(json.loads(body)["invoices"]) == 3,
}


@pytest.mark.parametrize("url", MADE)
def test_a_file_is_made_in_the_background_and_downloaded_from_s3(
    browser: Client, settings: Any, worker: RunTasks, url: str
) -> None:
    assert "Create the file" in told(browser, url)
    address = started(browser, url)
    waiting = browser.get(address)
    assert "The file is being created." in Page(waiting).text
    assert int(waiting["Refresh"]) > 0
    assert browser.get(f"{address}file/")["Location"] == address

    [export] = enqueued()
    assert [ran.outcome for ran in worker()] == ["successful"]

    ready = browser.get(address)
    assert "The file is ready." in Page(ready).text
    assert "Refresh" not in ready
    link = browser.get(f"{address}file/")["Location"]
    content = urllib3.request("GET", link).data
    assert MADE[url](content)
    query = dict(parse_qsl(urlsplit(link).query))
    assert query["X-Amz-Expires"] == str(LINK_SECONDS)
    assert (
        query["response-content-disposition"] == f'attachment; filename="{Export(**export).name}"'
    )
    # Without a bucket, the same file is sent.
    settings.EXPORTS_BUCKET = ""
    sent: Any = browser.get(url)
    assert url == JSON or b"".join(sent.streaming_content) == content


# One at a time ------------------------------------------------------------------------------------


def test_while_an_export_of_the_account_may_be_running_no_other_one_starts(
    browser: Client, ann: User, worker: RunTasks, at_once: Callable[..., list[Any]]
) -> None:
    browsers = [Client() for _number in range(8)]
    for item in browsers:
        item.cookies = browser.cookies

    [first] = set(at_once(lambda number: started(browsers[number]), 8))
    other = browser.post(ZIP, follow=True)

    assert len(enqueued()) == 1
    assert "Another file of your account is still being created." in Page(other).text
    bob = make_user(username="Bob")
    issued(bob.pk)
    started(let_in(bob))
    assert len(enqueued()) == 2
    # One that ends late does not let a third one start.
    cache.delete(f"exports.{ann.pk}")  # expired
    second = started(browser, ZIP)
    late, _of_bob, _second = enqueued()
    stored_exports.make.func(CONTEXT, late)
    assert started(browser, ZIP) == second != first
    worker()
    assert started(browser, ZIP) not in {first, second}


@pytest.mark.usefixtures("impatient")
def test_a_start_without_a_reply_is_continued_by_the_next_one(
    browser: Client, proxy: FaultProxy
) -> None:
    proxy.plan("TransactWriteItems", DropReply(), times=1_000)
    assert browser.post(CSV).status_code == 503
    proxy.forget()

    started(browser)

    assert len(enqueued()) == 1


# Repeated and failed ------------------------------------------------------------------------------


@pytest.fixture
def nothing_unfinished(_exporting: None, s3: Any, bucket: str) -> Iterator[None]:
    """At the end S3 keeps no parts of a file."""
    yield
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


@pytest.mark.usefixtures("nothing_unfinished")
def test_two_runs_of_a_task_at_once_and_a_later_one_make_the_file_once(
    browser: Client, storage: S3Proxy, worker: RunTasks, at_once: Callable[..., list[Any]]
) -> None:
    address = started(browser)
    [export] = enqueued()

    at_once(lambda _number: stored_exports.make.func(CONTEXT, export), 2)
    assert [ran.outcome for ran in worker()] == ["successful"]

    assert list(storage.stored.values()) == [1]
    assert "The file is ready." in told(browser, address)
    # A lost reply does not lose the file.
    address = started(browser)
    storage.plan("CompleteMultipartUpload", DropReply())
    assert [ran.outcome for ran in worker()] == ["successful"]
    assert "The file is ready." in told(browser, address)


@pytest.mark.usefixtures("nothing_unfinished")
def test_a_page_says_that_an_export_failed_or_is_late_and_lets_it_start_again(
    browser: Client, ann: User, worker: RunTasks
) -> None:
    def shown(address: str) -> str:
        page = browser.get(address)
        assert "Refresh" not in page
        assert f'action="{CSV}"' in page.content.decode()
        return Page(page).text

    ready = started(browser)
    worker()
    put_invoice(stored_invoices(ann.pk)[1], lines={"S": "none"})
    failed = started(browser)
    assert worker()[-1].outcome == "failed"
    assert "The file could not be created." in shown(failed)
    late = started(browser)
    assert late != failed

    pass_time(stored_exports.LATE)
    assert "The file is not there." in shown(late)
    assert "The file is ready." in told(browser, ready)
    pass_time(stored_exports.KEPT)
    assert "The file is not there." in shown(ready)


def test_a_connection_that_died_is_replaced(
    browser: Client, storage: S3Proxy, worker: RunTasks
) -> None:
    for _number in range(2):
        address = started(browser)
        worker()
        assert "The file is ready." in told(browser, address)
        # As happens while the function is frozen.
        storage.drop_connections()


# Whose --------------------------------------------------------------------------------------------


def test_an_export_is_shown_only_to_its_owner(browser: Client, ann: User, worker: RunTasks) -> None:
    address = started(browser)
    other_task = delete_address_book.enqueue(str(uuid.uuid4())).id
    bob = make_user(username="Bob")

    for page in (address, f"{address}file/"):
        assert let_in(bob).get(page).status_code == 404
        assert Client().get(page)["Location"].startswith("/accounts/login/?next=")
    for id_ in (uuid.uuid4(), other_task, "x"):
        assert browser.get(f"/invoices/exports/{id_}/").status_code == 404


def test_a_year_without_invoices_is_not_exported(browser: Client) -> None:
    for answer in (browser.get("/invoices/1999.zip"), browser.post("/invoices/1999.zip")):
        assert answer.status_code == 404
    assert enqueued() == []


def test_the_file_with_all_data_needs_a_fresh_sign_in_at_each_step(
    browser: Client, worker: RunTasks
) -> None:
    address = started(browser, JSON)
    worker()
    forget_password_check(browser)

    for response, path in (
        (browser.get(JSON), JSON),
        (browser.post(JSON), JSON),
        *((browser.get(path), path) for path in (address, f"{address}file/")),
    ):
        assert response["Location"] == f"/accounts/reauthenticate/?next={quote(path)}"

    browser.post(response["Location"], {"password": PASSWORD})
    assert browser.get(f"{address}file/")["Location"].startswith("http://127.0.0.1")


# Rights -------------------------------------------------------------------------------------------

_RIGHTS = {
    **dict.fromkeys(
        ("CompleteMultipartUpload", "CreateMultipartUpload", "UploadPart"), "s3:PutObject"
    )
}


def test_the_policies_have_the_rights_that_are_needed_and_no_others(
    browser: Client, ann: User, storage: S3Proxy, worker: RunTasks
) -> None:
    address = started(browser)
    worker()
    urllib3.request("GET", browser.get(f"{address}file/")["Location"])
    put_invoice(stored_invoices(ann.pk)[1], lines={"S": "none"})
    started(browser)
    worker()

    sent = {seen.operation for seen in storage.seen}
    needed = {_RIGHTS.get(operation, f"s3:{operation}") for operation in sent}
    # Pages read what tasks store.
    actions = (
        action
        for policy in ("exports", "tasks")
        for statement in statements(policy)
        for action in statement["Action"]
    )
    allowed = {action for action in actions if action.startswith("s3:")}
    assert allowed == needed
