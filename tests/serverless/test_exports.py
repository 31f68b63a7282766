"""Exports by a function of their own, and answers of more than 6 MB."""

import json
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
import urllib3

from accounts.models import User
from invoices.document.amounts import MAX_LINES, Line
from project.serverless import MOST_BYTES
from tests.invoice_factories import issued
from tests.serverless.runtime import Function
from tests.serverless.test_story import post, sign_up

URL = "/accounts/export/"
#: 200 KB in the export.
LINES = (Line("x" * 1_000, Decimal(1), Decimal(1), Decimal(19)),) * MAX_LINES
TOO_MANY = MOST_BYTES // 200_000 + 1
#: Of which S3 gets two parts.
INVOICES = 46


@pytest.fixture(scope="module")
def environment(environment: dict[str, str], s3_url: str, s3: Any) -> dict[str, str]:
    bucket = f"exports-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=bucket)
    return environment | {"AWS_ENDPOINT_URL_S3": s3_url, "EXPORTS_BUCKET": bucket}


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


def test_an_export_larger_than_an_answer_is_made_by_the_function_of_tasks(
    function: Function, new_function: Callable[..., Function]
) -> None:
    sign_up(function)
    issue_many(INVOICES)
    address = post(function, URL)
    assert "The file is being created." in function.request("GET", address).text
    # Meanwhile no other one starts.
    assert post(function, URL) == address

    with new_function("project.serverless.run_tasks", log="tasks") as tasks:
        # With the mail of the sign-up.
        assert tasks.invoke({}, seconds=60.0) == {"successful": 2}

    assert len(exported(function, address)["invoices"]) == INVOICES


def test_an_answer_that_is_too_large_is_an_error_that_the_log_names(
    new_function: Callable[..., Function],
) -> None:
    with new_function(EXPORTS_BUCKET=None) as function:
        sign_up(function)
        issue_many(TOO_MANY)

        reply = function.request("GET", URL, seconds=60.0)

    assert (reply.status, reply.text) == (500, "This answer is larger than the server can send.")
    assert "is larger than AWS Lambda sends" in function.log
