"""Events that no browser sends: the function answers all of them, as an error would be an alarm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings

from tests.serverless.runtime import Function, event

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


def test_an_event_that_is_no_request_is_one_log_line(function: Function, tmp_path: Path) -> None:
    assert function.request("GET", "/livez").status == 200

    reply = function.reply(function.invoke({"version": "2.0", "headers": {}}))

    assert reply.status == 500
    [line] = [each for each in (tmp_path / "log").read_text().splitlines() if "ERROR" in each]
    assert "A request could not be answered" in line
