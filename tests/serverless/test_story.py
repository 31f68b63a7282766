"""The site on AWS Lambda: whole stories through events, and events that no browser sends."""

import html
import re
from collections.abc import Callable
from typing import Any

from django.conf import settings

from tests.factories import PASSWORD
from tests.pages import new_account
from tests.serverless.runtime import CLIENT, Function, Reply, event


def hidden(page: str, name: str) -> str:
    """The value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, name
    return html.unescape(found[1])


def submit(
    function: Function, path: str, *, shown_at: str = "", seconds: float = 15.0, **fields: str
) -> Reply:
    """Send the form at `path` with its hidden fields."""
    page = function.request("GET", shown_at or path).text
    for name in ("csrfmiddlewaretoken", "request_id"):
        if f'name="{name}"' in page:
            fields[name] = hidden(page, name)
    return function.request("POST", path, fields, seconds=seconds)


def post(function: Function, path: str, *, shown_at: str = "", **fields: str) -> str:
    """Send the form at `path` with its hidden fields; where it redirects to."""
    reply = submit(function, path, shown_at=shown_at, **fields)
    assert reply.status == 302, reply.text
    return reply.headers["location"]


def sign_up(function: Function, username: str = "ann") -> None:
    assert post(function, "/accounts/signup/", **new_account(username)) == "/"


INVOICE = {
    "customer_name": "A customer",
    "customer_address": "1 Road",
    "currency": "EUR",
    "lines-TOTAL_FORMS": "1",
    "lines-INITIAL_FORMS": "0",
    "lines-0-description": "Work",
    "lines-0-quantity": "8",
    "lines-0-unit_price": "95.50",
    "lines-0-vat_rate": "19",
}


def issue(function: Function, **fields: str) -> str:
    """Issue an invoice with these fields, and others of `INVOICE`; the path of its page."""
    return post(function, "/invoices/new/", **(INVOICE | fields))


def test_an_account_signs_up_issues_an_invoice_signs_out_and_in_again(function: Function) -> None:
    sign_up(function)
    assert "ann@example.org" in function.request("GET", "/accounts/profile/").text

    invoice = issue(function)
    assert "A customer" in function.request("GET", invoice).text
    pdf = function.request("GET", invoice.rstrip("/") + ".pdf")
    assert (pdf.is_base64, pdf.headers["content-type"]) == (True, "application/pdf")
    assert pdf.body.startswith(b"%PDF-")

    assert post(function, "/accounts/logout/", shown_at="/") == "/"
    assert function.request("GET", "/accounts/profile/").status == 302

    reply = submit(function, "/accounts/login/", username="ann", password=PASSWORD)

    names = {cookie.strip().split("=")[0] for cookie in reply.cookies}
    # One response sets several cookies.
    assert names >= {"__Host-sessionid", "__Host-csrftoken"}


def test_the_client_s_address_is_the_one_that_aws_saw(
    function: Function, new_function: Callable[..., Function]
) -> None:
    forged = {"x-forwarded-for": "192.0.2.66", "x-request-id": "0" * 32}
    # With trusted hops, headers with underscores would count.
    odd = {"x_forwarded_for": "192.0.2.66", "X_Request_ID": "0" * 32}
    with new_function(ACCOUNTS_TRUSTED_HOPS="1") as trusting:
        for asked, headers in ((function, forged), (trusting, odd)):
            answer = asked.reply(asked.invoke(event("GET", "/", headers=headers)))

            assert answer.status == 200
            assert f'"client": "{CLIENT}"' in asked.log
            assert "192.0.2.66" not in asked.log
            assert "0" * 32 not in asked.log
            assert f'"requestId": "{answer.headers["x-request-id"]}"' in asked.log


# Events that no browser sends. The function answers all of them: an error would be an alarm -------


TOO_MANY = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1
CSRF = "__Host-csrftoken=" + "a" * 32


#: Changes of a request for the sign-in page, its headers, and the status of the answer.
ODD: list[tuple[dict[str, Any], dict[str, str], int]] = [
    ({"rawPath": "/あ/"}, {}, 404),
    ({"rawPath": "/caf\u00e9/\ud800"}, {}, 404),
    ({"rawQueryString": "next=あ\ud800"}, {}, 200),
    ({"cookies": ["sessionid=あ", CSRF]}, {"cookie": "あ"}, 200),
    ({}, {"referer": "あ", "user-agent": "\ud800", "host": "あ"}, 400),
    ({}, {"content-type": "text/plain; charset=rot13"}, 400),
    ({"rawQueryString": "&".join("a" * TOO_MANY)}, {"content-type": "a; charset=utf-8"}, 400),
    ({"body": "\ud800", "isBase64Encoded": False}, {}, 500),
]


def test_every_request_is_answered(function: Function) -> None:
    for changes, headers, status in ODD:
        sent = event("GET", "/accounts/login/", headers=headers) | changes
        reply = function.reply(function.invoke(sent))

        assert reply.status == status, (changes, headers)
        assert reply.headers["x-content-type-options"] == "nosniff"

    kind = "application/x-www-form-urlencoded; charset=latin1"
    unreadable = event("POST", "/accounts/login/", {"a": "b"}, headers={"content-type": kind})
    assert function.reply(function.invoke(unreadable | {"cookies": [CSRF]})).status == 400

    decoded = event("GET", "/accounts/login/") | {"rawQueryString": "next=/あ/"}
    assert "/あ/" in function.reply(function.invoke(decoded)).text

    is_no_request = {"version": "2.0", "headers": {}}
    failed = function.reply(function.invoke(is_no_request))
    assert (failed.status, "an error on our side" in failed.text) == (500, True)
    last = function.log.splitlines()[-1]
    assert '"message": "A request could not be answered"' in last
