"""Exports that are made in the background and stored in S3."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
import urllib3
from django.core.cache import cache
from django.test import Client

from accounts.models import User
from dynamo.cache import DynamoCache
from invoices.output import exports as stored_exports
from invoices.output.exports import LATE_SECONDS, LINK_SECONDS, Export
from outbox import TaskContext
from outbox.models import TaskItem
from tests.factories import PASSWORD, make_user
from tests.faults.kinds import DropReply
from tests.invoice_factories import DAY, issued, put_invoice, stored_invoices
from tests.pages import Page, let_in
from tests.policies import statements
from tests.registration import RunTasks
from tests.session_maps import forget_password_check
from tests.uploads.s3_proxy import S3Answer, S3Proxy, through

pytestmark = pytest.mark.usefixtures("engine")

YEAR = DAY.year
CSV = f"/invoices/{YEAR}.csv"
ZIP = f"/invoices/{YEAR}.zip"
JSON = "/accounts/export/"


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
    tasks = sorted(TaskItem.scan(), key=lambda item: item.enqueued_at)
    return [item.arguments[0][0] for item in tasks]


def make(number: int = -1) -> Export:
    """What the last attempt of a task does: create the file of an export, by default the last."""
    export = enqueued()[number]
    stored_exports.make.func(TaskContext(task_result=cast(Any, None)), export)
    return Export(**export)


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
    browser: Client, ann: User, at_once: Callable[..., list[Any]]
) -> None:
    browsers = [Client() for _number in range(8)]
    for item in browsers:
        item.cookies = browser.cookies

    [first] = set(at_once(lambda number: started(browsers[number]), 8))
    other = browser.post(ZIP, follow=True)

    assert len(enqueued()) == 1
    for text in ("Another file of your account is still being created.", f"invoices-{YEAR}.csv"):
        assert text in Page(other).text
    bob = make_user(username="Bob")
    issued(bob.pk)
    started(let_in(bob))
    assert len(enqueued()) == 2
    # One that ends late does not let a third one start.
    cache.delete(f"exports.{ann.pk}")  # expired
    second = started(browser)
    make(0)
    assert started(browser) == second != first
    make()
    assert started(browser) not in {first, second}


# Repeated and failed ------------------------------------------------------------------------------


def test_an_export_that_began_under_another_key_of_the_site_ends_as_any_other(
    ann: User, settings: Any
) -> None:
    export = Export(ann.pk, "csv", DAY.year)
    first = stored_exports.start(export)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key", [settings.SECRET_KEY]
    assert stored_exports.start(export) == first

    stored_exports.end(first)

    assert stored_exports.start(export).id != first.id


@pytest.fixture
def nothing_unfinished(_exporting: None, s3: Any, bucket: str) -> Iterator[None]:
    """At the end S3 keeps no parts of a file."""
    yield
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


@pytest.mark.usefixtures("nothing_unfinished")
def test_two_runs_of_an_event_at_once_and_a_later_one_make_the_file_once(
    browser: Client, storage: S3Proxy, at_once: Callable[..., list[Any]]
) -> None:
    address = started(browser)

    at_once(lambda _number: make(), 2)
    make()

    assert list(storage.stored.values()) == [1]
    assert "The file is ready." in told(browser, address)
    # A lost reply does not lose the file.
    address = started(browser)
    storage.plan("CompleteMultipartUpload", DropReply())
    make()
    assert "The file is ready." in told(browser, address)


@pytest.mark.usefixtures("nothing_unfinished")
def test_a_page_says_that_an_export_failed_or_is_late_and_lets_it_start_again(
    browser: Client, ann: User
) -> None:
    put_invoice(stored_invoices(ann.pk)[1], lines={"S": "none"})
    failed = started(browser)
    with pytest.raises(Exception, match="damaged"):
        make()
    late = Export(ann.pk, "csv", YEAR, str(uuid.uuid4()), int(time.time()) - LATE_SECONDS)

    for address, said in {
        failed: "The file could not be created.",
        f"/invoices/exports/{late.token}/": "The file is not there.",
    }.items():
        page = browser.get(address)
        assert said in Page(page).text
        assert "Refresh" not in page
        assert f'action="{CSV}"' in page.content.decode()
    assert started(browser) != failed


def test_if_no_place_is_free_the_page_says_so_and_the_next_start_works(
    browser: Client, ann: User
) -> None:
    cast(DynamoCache, cache).end(f"exports.{ann.pk}", 60)

    refused = browser.post(CSV)

    assert refused.status_code == 503
    assert "The file cannot be reached right now." in Page(refused).text
    assert enqueued() == []
    cache.delete(f"exports.{ann.pk}")
    started(browser)
    assert len(enqueued()) == 1


def test_a_connection_that_died_is_replaced_and_while_s3_does_not_answer_nothing_is_linked(
    browser: Client, storage: S3Proxy
) -> None:
    address = started(browser)
    make()
    assert "The file is ready." in told(browser, address)
    # As happens while the function is frozen.
    storage.drop_connections()
    assert "The file is ready." in told(browser, address)

    storage.plan("ListObjectsV2", S3Answer(403, "AccessDenied"), times=2)

    assert "The file is being created." in told(browser, address)
    assert browser.get(f"{address}file/").status_code == 503
    assert "The file is ready." in told(browser, address)


# Whose --------------------------------------------------------------------------------------------


def test_an_export_is_shown_to_its_owner_alone_under_its_own_token(
    browser: Client, settings: Any
) -> None:
    address = started(browser)
    export = make()
    bob = make_user(username="Bob")
    head, signature = address.split("/")[3].rsplit(":", 1)
    forged = replace(export, account=bob.pk).token.rsplit(":", 1)[0]

    for page in (address, f"{address}file/"):
        assert let_in(bob).get(page).status_code == 404
        assert Client().get(page)["Location"].startswith("/accounts/login/?next=")
    for changed in (f"{head}:{signature[::-1]}", f"{forged}:{signature}", head, "x"):
        for client in (let_in(bob), browser):
            assert client.get(f"/invoices/exports/{changed}/").status_code == 404
    # It outlives a change of the key.
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "new"
    assert "The file is ready." in told(browser, address)


def test_a_year_without_invoices_is_not_exported(browser: Client) -> None:
    for answer in (browser.get("/invoices/1999.zip"), browser.post("/invoices/1999.zip")):
        assert answer.status_code == 404
    assert enqueued() == []


def test_the_file_with_all_data_needs_a_fresh_sign_in_at_each_step(browser: Client) -> None:
    address = started(browser, JSON)
    make()
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
    ),
    "ListObjectsV2": "s3:ListBucket",
}


def test_the_policies_have_the_rights_that_are_needed_and_no_others(
    browser: Client, ann: User, storage: S3Proxy
) -> None:
    address = started(browser)
    make()
    urllib3.request("GET", browser.get(f"{address}file/")["Location"])
    put_invoice(stored_invoices(ann.pk)[1], lines={"S": "none"})
    started(browser)
    with pytest.raises(Exception, match="damaged"):
        make()

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
