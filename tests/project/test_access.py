"""One log line for each request: what was requested, by whom, the answer and its cost."""

import io
import json
import logging
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client
from django.urls import include, path

from accounts.models import User
from dynamo.client.sending import send
from project.logs import HIDDEN, HidingJsonFormatter, TalkativeFilter
from tests.commands import ROOT
from tests.pages import sign_in

pytestmark = pytest.mark.usefixtures("engine")

GET = {"TableName": "users", "Key": {"pk": {"S": "nobody"}}}
OURS = "0123456789abcdef0123456789abcdef"


def streamed(request: HttpRequest) -> StreamingHttpResponse:
    def parts() -> Iterator[str]:
        for _part in range(2):
            send("GetItem", GET)
            yield "part"

    return StreamingHttpResponse(parts())


def noisy(request: HttpRequest, token: str) -> HttpResponse:
    log = logging.getLogger("noisy")
    log.info("first")
    try:
        raise RuntimeError(f'a "quoted" bug of {request.POST["password"]}')
    except RuntimeError:
        log.exception("second %s", token, extra={"request": request})
    return HttpResponse()


urlpatterns = [
    path("streamed/", streamed, name="streamed"),
    path("noisy/<str:token>/", noisy, name="noisy"),
    path("", include("project.urls")),
]


class Lines(io.StringIO):
    """The JSON lines that were written."""

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]

    def of_access(self) -> list[dict[str, Any]]:
        return [line for line in self.all() if line["logger"] == "project.access"]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What production's handler writes at INFO and above."""
    written = Lines()
    handler = logging.StreamHandler(written)
    handler.setFormatter(HidingJsonFormatter())
    handler.addFilter(TalkativeFilter())
    handler.setLevel(logging.INFO)
    logging.root.addHandler(handler)
    yield written
    logging.root.removeHandler(handler)


@pytest.mark.fault_of("ministack", "tells no capacity of a batch of reads")
@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
def test_each_request_is_one_log_line_with_all_fields(
    ann: User, lines: Lines, settings: Any
) -> None:
    # The address is the one that limits use.
    settings.ACCOUNTS_TRUSTED_HOPS = 1
    client = Client(headers={"x-forwarded-for": "203.0.113.9, 192.0.2.7"})
    sign_in(client, ann)

    response = client.get("/accounts/profile/?next=/secret")

    line = lines.of_access()[-1]
    assert line.pop("milliseconds") > 0
    assert line.pop("time").endswith("+00:00")
    assert line.pop("message").startswith("GET /accounts/profile/ 200, ")
    assert line == {
        "level": "INFO",
        "logger": "project.access",
        "requestId": response["X-Request-ID"],
        "method": "GET",
        "path": "/accounts/profile/",
        "url": "profile",
        "status": 200,
        "account": ann.pk,
        "client": "192.0.2.7",
        "dynamodbRequests": 1,
        "readUnits": 2.0,
        "writeUnits": 0.0,
        "retries": 0,
        "conflicts": 0,
        "joined": 0,
    }


def test_the_log_line_costs_no_request_to_dynamodb(ann: User, lines: Lines) -> None:
    client = Client()
    sign_in(client, ann)
    client.get("/nowhere")

    signed_in, unknown = lines.of_access()[-2:]
    assert signed_in["account"] == ann.pk
    assert (unknown["url"], unknown["status"]) == ("none", 404)
    # That page did not read who is signed in, so the line does not either.
    assert unknown["dynamodbRequests"] == 0
    assert "account" not in unknown
    client.post("/accounts/logout/")
    assert lines.of_access()[-1]["account"] == ann.pk


def test_no_handler_gets_a_secret_of_the_request(ann: User, lines: Lines, caplog: Any) -> None:
    client = Client()
    sign_in(client, ann)
    secret = client.cookies["sessionid"].value

    client.get(f"/{secret}/accounts/confirm/link-token/?next=/accounts/confirm/other/")

    record = [record for record in caplog.records if record.name == "project.access"][-1]
    written = str(vars(record))
    assert {secret, "link-token"} & set(re.split(r"[ '/]", written)) == set()
    assert not hasattr(record, "request")
    line = lines.of_access()[-1]
    hidden = f"/{HIDDEN}/accounts/confirm/{HIDDEN}/"
    assert line["path"] == hidden
    assert line["message"].startswith(f"GET {hidden} 404")


def test_a_request_id_is_taken_over_only_from_a_proxy_and_only_if_it_is_a_uuid(
    settings: Any,
) -> None:
    def answered(given: str) -> str:
        return Client().get("/livez", HTTP_X_REQUEST_ID=given)["X-Request-ID"]

    assert answered(OURS) != OURS
    settings.ACCOUNTS_TRUSTED_HOPS = 1
    uuids = [OURS, OURS.upper(), str(uuid.UUID(OURS))]
    assert [answered(item) for item in uuids] == uuids
    for other in (
        *("", "ours", OURS + "0", f"urn:uuid:{OURS}", OURS[:-1] + "\n", "\uff10" * 32),
        "{" * 4000 + OURS + "}" * 4000,
    ):
        assert uuid.UUID(answered(other)).version == 4
        assert answered(other) != other


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
@pytest.mark.urls(__name__)
def test_the_cost_of_an_answer_includes_what_is_streamed(lines: Lines) -> None:
    response = Client().get("/streamed/")
    assert lines.of_access() == []

    assert response.getvalue() == b"partpart"
    response.close()

    (line,) = lines.of_access()
    assert (line["url"], line["dynamodbRequests"], line["readUnits"]) == ("streamed", 2, 2.0)
    assert line["requestId"] == response["X-Request-ID"]


@pytest.mark.parametrize("host", ["elsewhere.example", "exa mple", "x" * 5000, "a\x1b[31m.example"])
def test_a_request_for_a_wrong_host_logs_one_line_without_a_traceback(
    lines: Lines, settings: Any, host: str
) -> None:
    settings.ALLOWED_HOSTS = ["www.example.org"]

    response = Client(headers={"host": host}).get("/accounts/profile/?q=1")

    assert response.status_code == 400
    [line] = [line for line in lines.all() if line["logger"] != "project.access"]
    assert (line["level"], line["logger"]) == ("WARNING", "project.middleware")
    assert line["message"].startswith("Invalid HTTP_HOST header: ")
    assert len(line["message"]) <= 300
    assert line["message"].isprintable()
    assert "exception" not in line
    assert [line["status"] for line in lines.of_access()] == [400]


def test_successful_health_checks_are_not_logged(lines: Lines) -> None:
    for probe in ("/livez", "/healthz"):
        assert Client().get(probe).status_code == 200

    assert lines.all() == []


@pytest.mark.urls(__name__)
def test_json_log_lines_contain_no_secret(lines: Lines) -> None:
    password = 'correct "horse" bättery\\'

    answer = Client().post("/noisy/a-token-of-a-link/", {"password": password})

    first, second, access = lines.all()
    assert {line["requestId"] for line in (first, second, access)} == {answer["X-Request-ID"]}
    assert first["message"] == "first"
    assert "exception" not in first
    assert second["message"] == f"second {HIDDEN}"
    assert second["exception"].startswith("Traceback")
    assert second["exception"].endswith(f'RuntimeError: a "quoted" bug of {HIDDEN}')
    assert access["path"] == f"/noisy/{HIDDEN}/"
    text = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert [name for name in {**first, **second, **access} if f"`{name}`" not in text] == []
    for line in (first, second, access):
        assert not any("a-token" in str(value) or "horse" in str(value) for value in line.values())


@pytest.mark.fault_of("ministack", "tells no capacity of a batch of reads")
@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
def test_under_debug_a_header_tells_the_cost_of_the_page(
    ann: User, settings: Any, lines: Lines
) -> None:
    client = Client()
    sign_in(client, ann)
    assert "Server-Timing" not in client.get("/accounts/profile/")

    settings.DEBUG = True
    said = client.get("/accounts/profile/")["Server-Timing"]

    dynamodb, total = said.split(", total;dur=")
    assert dynamodb.startswith("dynamodb;dur=")
    assert dynamodb.endswith(';desc="1 request, 2 RCU"')
    assert float(total) > 0
