"""Exports by a function of their own, and answers of more than 6 MB."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
import urllib3

from accounts.models import User
from invoices.document.amounts import MAX_LINES, Line
from project.serverless import MOST_BYTES
from tests.faults.kinds import Meanwhile
from tests.invocations import Invocations
from tests.invoice_factories import issued, put_invoice, stored_invoices
from tests.serverless.runtime import Function, FunctionError
from tests.serverless.test_story import post, sign_up
from tests.uploads.s3_proxy import S3Proxy

URL = "/accounts/export/"
#: 200 KB in the export.
LINES = (Line("x" * 1_000, Decimal(1), Decimal(1), Decimal(19)),) * MAX_LINES
TOO_MANY = MOST_BYTES // 200_000 + 1
#: Of which S3 gets two parts.
INVOICES = 46


@pytest.fixture(scope="module")
def storage(s3_url: str) -> Iterator[S3Proxy]:
    with S3Proxy(s3_url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def _modules_api() -> Iterator[Invocations]:
    with Invocations() as api:
        yield api


@pytest.fixture
def api(_modules_api: Invocations) -> Invocations:
    _modules_api.events.clear()
    return _modules_api


@pytest.fixture(scope="module")
def environment(
    environment: dict[str, str], storage: S3Proxy, _modules_api: Invocations, s3: Any
) -> dict[str, str]:
    bucket = f"exports-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=bucket)
    return environment | {
        "AWS_ENDPOINT_URL_LAMBDA": _modules_api.url,
        "AWS_ENDPOINT_URL_S3": storage.url,
        "EXPORTS_BUCKET": bucket,
        "EXPORTS_FUNCTION": _modules_api.function,
    }


EXPORTS = "project.serverless.export_handler"


def issue_many(count: int) -> None:
    account = User.named("ann").pk
    for _number in range(count):
        issued(account, lines=LINES)


def exported(function: Function, address: str) -> Any:
    """The file behind the link on the export's page."""
    page = function.request("GET", address)
    found = re.search(r'href="([^"]+/file/)"', page.text)
    assert found is not None, page.text
    link = function.request("GET", found[1]).headers["location"]
    answer = urllib3.request("GET", link)
    assert len(answer.data) > MOST_BYTES
    return json.loads(answer.data)


def test_an_export_larger_than_an_answer_is_made_by_a_function_also_after_one_was_killed(
    function: Function, new_function: Callable[..., Function], api: Invocations, storage: S3Proxy
) -> None:
    storage.forget()
    sign_up(function)
    issue_many(INVOICES)
    address = post(function, URL)
    assert "The file is being created." in function.request("GET", address).text
    [event] = api.events

    with new_function(EXPORTS, log="killed") as killed:
        second = Meanwhile(killed.process.kill)
        storage.plan("UploadPart", second, when=lambda request: request["partNumber"] == "2")
        with pytest.raises(FunctionError):
            killed.invoke(event, seconds=60.0)
    assert "The file is being created." in function.request("GET", address).text
    # Meanwhile no other one starts.
    assert post(function, URL) == address

    with new_function(EXPORTS, log="again") as again:
        assert again.invoke(event, seconds=60.0) is None
    assert len(exported(function, address)["invoices"]) == INVOICES
    assert api.events == [event]
    assert storage.count("UploadPart") == 2 + 2


def test_a_failed_export_is_an_error_that_only_our_log_describes(
    function: Function, new_function: Callable[..., Function], api: Invocations
) -> None:
    sign_up(function)
    account = User.named("ann").pk
    issued(account)
    put_invoice(stored_invoices(account)[0], lines={"S": "none"})
    address = post(function, URL)

    with new_function(EXPORTS, log="maker") as other, pytest.raises(FunctionError) as failed:
        other.invoke(api.events[0])

    assert "DamagedItem; see the log." in str(failed.value)
    assert '"message": "An export failed"' in other.log
    assert "The file could not be created." in function.request("GET", address).text


def test_an_answer_that_is_too_large_is_an_error_that_the_log_names(
    new_function: Callable[..., Function],
) -> None:
    with new_function(EXPORTS_BUCKET=None, EXPORTS_FUNCTION=None) as function:
        sign_up(function)
        issue_many(TOO_MANY)

        reply = function.request("GET", URL, seconds=60.0)

    assert (reply.status, reply.text) == (500, "This answer is larger than the server can send.")
    assert "is larger than AWS Lambda sends" in function.log
