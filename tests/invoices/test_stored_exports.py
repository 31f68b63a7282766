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
from invoices.exceptions import ExportTooSlow
from invoices.output import exports as stored_exports
from invoices.output.exports import LATE_SECONDS, LINK_SECONDS, Export
from tests.factories import PASSWORD, make_user
from tests.faults.kinds import DropReply
from tests.invocations import Invocations
from tests.invoice_factories import DAY, issued, put_invoice, stored_invoices
from tests.pages import Page, let_in
from tests.policies import statements
from tests.session_maps import forget_password_check
from tests.uploads.s3_proxy import S3Answer, S3Proxy, through

pytestmark = pytest.mark.usefixtures("engine")

YEAR = DAY.year
CSV = f"/invoices/{YEAR}.csv"
ZIP = f"/invoices/{YEAR}.zip"
JSON = "/accounts/export/"
#: More than a function needs for these exports.
SECONDS = 60.0


@pytest.fixture(scope="module")
def _modules_stand_ins(s3_url: str) -> Iterator[tuple[S3Proxy, Invocations]]:
    # One for the module, as each takes a client of its own, which is slow to make.
    with (
        pytest.MonkeyPatch.context() as patch,
        S3Proxy(s3_url) as proxy,
        Invocations() as api,
        through(proxy.url),
    ):
        patch.setenv("AWS_ENDPOINT_URL_LAMBDA", api.url)
        clients = stored_exports._s3, stored_exports._lambda
        for client in clients:
            client.reset()
        yield proxy, api
    for item in clients:
        item.reset()


@pytest.fixture
def storage(_modules_stand_ins: tuple[S3Proxy, Invocations]) -> S3Proxy:
    """A proxy before S3, through which everything goes."""
    _modules_stand_ins[0].forget()
    return _modules_stand_ins[0]


@pytest.fixture(autouse=True)
def exports(
    _modules_stand_ins: tuple[S3Proxy, Invocations], storage: S3Proxy, bucket: str, settings: Any
) -> Invocations:
    """The site with a bucket for exports. Returns what was sent to Lambda."""
    api = _modules_stand_ins[1]
    api.events.clear()
    settings.EXPORTS_BUCKET = bucket
    settings.EXPORTS_FUNCTION = api.function
    return api


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


def make(exports: Invocations, number: int = -1) -> Export:
    """What the function does: create the file of an export, by default of the last one."""
    stored_exports.make(exports.events[number], SECONDS)
    return Export(**exports.events[number])


def told(browser: Client, address: str) -> str:
    return Page(browser.get(address)).text


MADE: dict[str, Callable[[bytes], bool]] = {
    CSV: lambda body: body.count(b"\r\n") == 4,
    ZIP: lambda body: body.startswith(b"PK") and body.count(b".pdf") == 6,
    JSON: lambda body: len(json.loads(body)["invoices"]) == 3,
}


@pytest.mark.parametrize("url", MADE)
def test_a_file_is_made_in_the_background_and_downloaded_from_s3(
    browser: Client, exports: Invocations, settings: Any, url: str
) -> None:
    assert "Create the file" in told(browser, url)
    address = started(browser, url)
    waiting = browser.get(address)
    assert "The file is being created." in Page(waiting).text
    assert int(waiting["Refresh"]) > 0
    assert browser.get(f"{address}file/")["Location"] == address

    export = make(exports)

    ready = browser.get(address)
    assert "The file is ready." in Page(ready).text
    assert "Refresh" not in ready
    link = browser.get(f"{address}file/")["Location"]
    content = urllib3.request("GET", link).data
    assert MADE[url](content)
    query = dict(parse_qsl(urlsplit(link).query))
    assert query["X-Amz-Expires"] == str(LINK_SECONDS)
    assert query["response-content-disposition"] == f'attachment; filename="{export.name}"'
    # Without a bucket, the same file is sent.
    settings.EXPORTS_BUCKET = ""
    sent: Any = browser.get(url)
    assert url == JSON or b"".join(sent.streaming_content) == content


# One at a time ------------------------------------------------------------------------------------


def test_while_an_export_of_the_account_may_be_running_no_other_one_starts(
    browser: Client, ann: User, exports: Invocations, at_once: Callable[..., list[Any]]
) -> None:
    browsers = [Client() for _number in range(8)]
    for item in browsers:
        item.cookies = browser.cookies

    [first] = set(at_once(lambda number: started(browsers[number]), 8))
    other = browser.post(ZIP, follow=True)

    assert len(exports.events) == 1
    for text in ("Another file of your account is still being created.", f"invoices-{YEAR}.csv"):
        assert text in Page(other).text
    bob = make_user(username="Bob")
    issued(bob.pk)
    started(let_in(bob))
    assert len(exports.events) == 2
    # One that ends late does not let a third one start.
    cache.delete(f"exports.{ann.pk}")  # expired
    second = started(browser)
    make(exports, 0)
    assert started(browser) == second != first
    make(exports)
    assert started(browser) not in {first, second}


# Repeated and failed ------------------------------------------------------------------------------


@pytest.fixture
def nothing_unfinished(exports: Invocations, s3: Any, bucket: str) -> Iterator[None]:
    """At the end S3 keeps no parts of a file."""
    yield
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


@pytest.mark.usefixtures("nothing_unfinished")
def test_two_runs_of_an_event_at_once_and_a_later_one_make_the_file_once(
    browser: Client, exports: Invocations, storage: S3Proxy, at_once: Callable[..., list[Any]]
) -> None:
    address = started(browser)

    at_once(lambda _number: make(exports), 2)
    make(exports)

    assert list(storage.stored.values()) == [1]
    assert "The file is ready." in told(browser, address)
    # A lost reply does not lose the file.
    address = started(browser)
    storage.plan("CompleteMultipartUpload", DropReply())
    make(exports)
    assert "The file is ready." in told(browser, address)


@pytest.mark.usefixtures("nothing_unfinished")
def test_a_page_says_that_an_export_failed_or_is_late_and_lets_it_start_again(
    browser: Client, ann: User, exports: Invocations
) -> None:
    slow = started(browser)
    with pytest.raises(ExportTooSlow):
        stored_exports.make(exports.events[0], stored_exports.SECONDS_TO_CLEAN_UP)
    put_invoice(stored_invoices(ann.pk)[1], lines={"S": "none"})
    failed = started(browser)
    with pytest.raises(Exception, match="damaged"):
        make(exports)
    make(exports)  # again, as Lambda does after an error
    late = Export(ann.pk, "csv", YEAR, str(uuid.uuid4()), int(time.time()) - LATE_SECONDS)

    for address, said in {
        slow: "The file could not be created.",
        failed: "The file could not be created.",
        f"/invoices/exports/{late.token}/": "The file is not there.",
    }.items():
        page = browser.get(address)
        assert said in Page(page).text
        assert "Refresh" not in page
        assert f'action="{CSV}"' in page.content.decode()
    assert started(browser) not in {slow, failed}


def test_if_lambda_refuses_or_no_place_is_free_the_page_says_so_and_the_next_start_works(
    browser: Client, ann: User, exports: Invocations
) -> None:
    exports.is_down = True
    refused = [browser.post(CSV)]
    exports.is_down = False
    cast(DynamoCache, cache).end(f"exports.{ann.pk}", 60)
    refused.append(browser.post(CSV))

    for item in refused:
        assert item.status_code == 503
        assert "The file cannot be reached right now." in Page(item).text
    assert exports.events == []
    cache.delete(f"exports.{ann.pk}")
    started(browser)
    assert len(exports.events) == 1


def test_a_page_does_not_wait_long_for_lambda(
    browser: Client, exports: Invocations, settings: Any
) -> None:
    # Less than it waits for Lambda, which does not count.
    settings.DYNAMODB_PAGE_SECONDS = 2.0
    exports.answers.clear()

    began = time.monotonic()
    assert "The file cannot be reached right now." in Page(browser.post(CSV)).text
    assert time.monotonic() - began < 10

    exports.answers.set()
    started(browser)
    # Sent again once, with the same id; then the second start.
    ids = [event["id"] for event in exports.events]
    assert [ids.count(id_) for id_ in dict.fromkeys(ids)] == [2, 1]


def test_a_connection_that_died_is_replaced_and_while_s3_does_not_answer_nothing_is_linked(
    browser: Client, exports: Invocations, storage: S3Proxy
) -> None:
    address = started(browser)
    make(exports)
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
    browser: Client, exports: Invocations, settings: Any
) -> None:
    address = started(browser)
    export = make(exports)
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


def test_a_year_without_invoices_is_not_exported(browser: Client, exports: Invocations) -> None:
    for answer in (browser.get("/invoices/1999.zip"), browser.post("/invoices/1999.zip")):
        assert answer.status_code == 404
    assert exports.events == []


def test_the_file_with_all_data_needs_a_fresh_sign_in_at_each_step(
    browser: Client, exports: Invocations
) -> None:
    address = started(browser, JSON)
    make(exports)
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


def test_the_policy_has_the_rights_that_are_needed_and_no_others(
    browser: Client, ann: User, exports: Invocations, storage: S3Proxy
) -> None:
    address = started(browser)
    make(exports)
    urllib3.request("GET", browser.get(f"{address}file/")["Location"])
    put_invoice(stored_invoices(ann.pk)[1], lines={"S": "none"})
    started(browser)
    with pytest.raises(Exception, match="damaged"):
        make(exports)

    sent = {seen.operation for seen in storage.seen}
    needed = {_RIGHTS.get(operation, f"s3:{operation}") for operation in sent}
    allowed = {action for statement in statements("exports") for action in statement["Action"]}
    assert allowed == needed | {"lambda:InvokeFunction"}
