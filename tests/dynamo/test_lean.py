"""The short way sends what botocore sends, trusts what it trusts, and raises what it raises."""

from __future__ import annotations

import json
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError
from django.conf import settings as django_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo import client as dynamo_client
from dynamo.lean import OPERATIONS, LeanWay, may_go_lean
from tests.engines import free_port
from tests.waiting import wait_until

KEYS = Credentials("AKID", "secret")
GET = {"TableName": "users", "Key": {"pk": {"S": "a"}}}

TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.one_of(
        st.builds(lambda text: {"S": text}, TEXTS),
        st.builds(lambda number: {"N": str(number)}, st.integers()),
        st.builds(lambda data: {"B": data}, st.binary(max_size=8)),
        st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
        st.just({"NULL": True}),
        st.builds(lambda texts: {"SS": texts}, st.lists(TEXTS, max_size=3)),
        st.builds(lambda blobs: {"BS": blobs}, st.lists(st.binary(max_size=4), max_size=3)),
    ),
    lambda inner: st.one_of(
        st.builds(lambda values: {"L": values}, st.lists(inner, max_size=3)),
        st.builds(
            lambda values: {"M": values},
            st.dictionaries(TEXTS | st.sampled_from(["B", "BS"]), inner, max_size=3),
        ),
    ),
    max_leaves=8,
)
ITEMS = st.dictionaries(TEXTS | st.sampled_from(["B", "BS"]), VALUES, max_size=4)


class Endpoint:
    """An HTTP server that keeps what it is asked, and answers as it is told."""

    def __init__(self) -> None:
        self.status, self.body = 200, b"{}"
        self.headers: dict[str, str] = {}
        #: What came: headers in lower case, and bodies.
        self.asked: list[tuple[dict[str, str], bytes]] = []
        self.closed = 0
        self._server = self._listening()
        Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _listening(self) -> ThreadingHTTPServer:
        endpoint = self

        class Server(ThreadingHTTPServer):
            def shutdown_request(self, request: Any) -> None:
                super().shutdown_request(request)
                endpoint.closed += 1

        return Server(("127.0.0.1", 0), self._handler())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                named = {name.lower(): value for name, value in self.headers.items()}
                endpoint.asked.append((named, body))
                self.send_response(endpoint.status)
                for name, value in endpoint.headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in endpoint.headers:
                    self.send_header("Content-Length", str(len(endpoint.body)))
                self.end_headers()
                self.wfile.write(endpoint.body)
                self.close_connection = "Content-Length" in endpoint.headers

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def http() -> Iterator[Endpoint]:
    server = Endpoint()
    yield server
    server.close()


@pytest.fixture
def endpoint(http: Endpoint) -> Endpoint:
    http.status, http.body, http.headers = 200, b"{}", {}
    http.asked.clear()
    return http


def botocores(url: str, **config: Any) -> Any:
    return boto3.client(
        "dynamodb",
        "eu-central-1",
        endpoint_url=url,
        aws_access_key_id=KEYS.access_key,
        aws_secret_access_key=KEYS.secret_key,
        config=Config(
            parameter_validation=False,
            user_agent="test",
            retries={"total_max_attempts": 1, "mode": "legacy"},
            **config,
        ),
    )


def lean(url: str, credentials: Any = KEYS, **config: Any) -> LeanWay:
    return LeanWay(botocores(url, **config), credentials, None)


Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=["lean", "botocore"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Ask]:
    """GetItem by either way: whatever a test demands, both do."""

    def of(url: str, **config: Any) -> Ask:
        if request.param == "lean":
            way = lean(url, **config)
            return lambda **asked: way.send("GetItem", asked)
        made: Ask = botocores(url, **config).get_item
        return made

    return of


@settings(deadline=None)
@given(ITEMS)
def test_a_request_has_the_body_that_botocore_makes(http: Endpoint, item: dict[str, Any]) -> None:
    http.status, http.body, http.headers = 200, b"{}", {}
    http.asked.clear()
    request = {
        "TransactItems": [{"Put": {"TableName": "users", "Item": item}}],
        "ClientRequestToken": "token",
        "ReturnConsumedCapacity": "TOTAL",
    }

    WAYS[http.url][0].send("TransactWriteItems", request)
    WAYS[http.url][1].transact_write_items(**request)

    (_, ours), (_, theirs) = http.asked
    assert json.loads(ours) == json.loads(theirs)


class _Ways(dict[str, tuple[LeanWay, Any]]):
    def __missing__(self, url: str) -> tuple[LeanWay, Any]:
        self[url] = lean(url), botocores(url)
        return self[url]


# A client takes its time to be made, and hypothesis asks a hundred times.
WAYS = _Ways()


@settings(deadline=None)
@given(ITEMS)
def test_an_answer_is_read_as_botocore_reads_it(http: Endpoint, item: dict[str, Any]) -> None:
    http.status, http.headers = 200, {}
    ours, theirs = WAYS[http.url]
    put = {"TransactItems": [{"Put": {"TableName": "users", "Item": item}}]}
    http.body = b"{}"
    ours.send("TransactWriteItems", put)
    sent = json.loads(http.asked[-1][1])["TransactItems"][0]["Put"]["Item"]
    http.body = json.dumps({"Item": sent}).encode()

    assert ours.send("GetItem", GET)["Item"] == theirs.get_item(**GET)["Item"] == item


@pytest.mark.parametrize("token", [None, "a token"])
@pytest.mark.parametrize("path", ["", "/below/it"])
def test_a_request_bears_the_signature_that_botocore_makes(
    endpoint: Endpoint, token: str | None, path: str
) -> None:
    keys = Credentials("AKID", "secret", token)
    way = lean(endpoint.url + path, keys)

    for operation in ("GetItem", "UpdateItem"):
        way.send(operation, GET)

        headers, body = endpoint.asked[-1]
        names = {"content-type", "host", "x-amz-date", "x-amz-target", "x-amz-security-token"}
        signed = {name: headers[name] for name in names & headers.keys()}
        again = AWSRequest("POST", endpoint.url + (path or "/"), signed, body)
        again.context["timestamp"] = headers["x-amz-date"]
        auth = _AtThatTime(keys, "dynamodb", "eu-central-1")
        auth.add_auth(again)
        assert again.headers["Authorization"] == headers["authorization"]
        assert ("x-amz-security-token" in headers) == (token is not None)


class _AtThatTime(SigV4Auth):
    """Signs with the time that the request names already."""

    def add_auth(self, request: AWSRequest) -> None:
        canonical = self.canonical_request(request)
        signature = self.signature(self.string_to_sign(request, canonical), request)
        self._inject_signature_to_request(request, signature)


def test_the_key_of_a_day_is_not_used_on_the_next(endpoint: Endpoint) -> None:
    signer = lean(endpoint.url)._signer
    today = time.time()
    frozen = KEYS.get_frozen_credentials()

    first = signer.headers("GetItem", b"{}", frozen, today)
    tomorrows = signer.headers("GetItem", b"{}", frozen, today + 86_400)
    fresh = lean(endpoint.url)._signer.headers("GetItem", b"{}", frozen, today + 86_400)

    assert tomorrows == fresh
    assert signer.headers("GetItem", b"{}", frozen, today) == first


def test_credentials_that_run_out_are_refreshed_before_they_sign(endpoint: Endpoint) -> None:
    drawn = iter(["first", "second", "third"])

    def fetch() -> dict[str, Any]:
        name = next(drawn)
        lasts = timedelta(seconds=1) if name == "first" else timedelta(hours=1)
        return {
            "access_key": name,
            "secret_key": name,
            "token": name,
            "expiry_time": (datetime.now(UTC) + lasts).isoformat(),
        }

    way = lean(endpoint.url, RefreshableCredentials.create_from_metadata(fetch(), fetch, "test"))
    for _request in range(3):
        way.send("GetItem", GET)

    assert [headers["x-amz-security-token"] for headers, _body in endpoint.asked] == ["second"] * 3


def test_without_credentials_nothing_leaves(endpoint: Endpoint) -> None:
    with pytest.raises(NoCredentialsError):
        lean(endpoint.url, None).send("GetItem", GET)
    assert endpoint.asked == []


ERRORS = {
    "a refusal with what is stored": (
        400,
        {
            "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
            "message": "The conditional request failed",
            "Item": {"pk": {"S": "a"}, "blob": {"B": "aGVsbG8="}},
        },
    ),
    "a cancelled transaction": (
        400,
        {
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled",
            "CancellationReasons": [
                {"Code": "None"},
                {"Code": "ConditionalCheckFailed", "Item": {"pk": {"S": "a"}}, "Message": "no"},
            ],
        },
    ),
    "one that the model does not know": (
        400,
        {"__type": "com.amazon.coral.service#ExpiredTokenException", "message": "expired"},
    ),
    "a code with a colon": (400, {"__type": "ThrottlingException:http://x", "message": "slow"}),
    "a fault of the server": (
        500,
        {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "sorry"},
    ),
    "no code": (400, {"message": "what?"}),
    "an empty body": (503, None),
    "no JSON": (502, "<html>Bad Gateway</html>"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_the_one_that_botocore_raises(endpoint: Endpoint, name: str) -> None:
    endpoint.status, told = ERRORS[name]
    endpoint.body = told.encode() if isinstance(told, str) else json.dumps(told).encode()
    endpoint.body = b"" if told is None else endpoint.body
    endpoint.headers = {"x-amzn-RequestId": "an-id"}

    with pytest.raises(ClientError) as ours:
        lean(endpoint.url).send("GetItem", GET)
    with pytest.raises(ClientError) as theirs:
        botocores(endpoint.url).get_item(**GET)

    assert type(ours.value).__name__ == type(theirs.value).__name__
    # botocore tells of the repetitions that are switched off.
    assert str(ours.value) == str(theirs.value).replace(" (reached max retries: 0)", "")
    assert _without_transport(ours.value.response) == _without_transport(theirs.value.response)


def _without_transport(response: Any) -> dict[str, Any]:
    metadata = response["ResponseMetadata"]
    kept = {name: metadata.get(name) for name in ("HTTPStatusCode", "RequestId")}
    return {**response, "ResponseMetadata": kept}


def test_an_answer_whose_crc_is_wrong_is_refused(endpoint: Endpoint, ask: Any) -> None:
    endpoint.body = b'{"Item": {"pk": {"S": "a"}}}'
    get = ask(endpoint.url)
    endpoint.headers = {"x-amz-crc32": str(zlib.crc32(endpoint.body))}
    assert get(**GET)["Item"] == {"pk": {"S": "a"}}

    endpoint.headers = {"x-amz-crc32": str(zlib.crc32(endpoint.body) ^ 1)}
    with pytest.raises(ChecksumError):
        get(**GET)


def test_an_answer_that_ends_early_is_a_closed_connection(endpoint: Endpoint, ask: Any) -> None:
    endpoint.body, endpoint.headers = b'{"Item"', {"Content-Length": "20"}
    with pytest.raises((ConnectionClosedError, BotoCoreError)):
        ask(endpoint.url)(**GET)


def test_an_answer_that_is_no_json_is_no_success(endpoint: Endpoint) -> None:
    endpoint.body = b"{"
    with pytest.raises(ResponseParserError):
        lean(endpoint.url).send("GetItem", GET)


def test_a_closed_port_is_a_failure_to_connect(ask: Any) -> None:
    with pytest.raises(EndpointConnectionError):
        ask(f"http://127.0.0.1:{free_port()}")(**GET)


def test_a_name_that_nobody_has_is_a_failure_to_connect(ask: Any) -> None:
    with pytest.raises(EndpointConnectionError):
        ask("http://nobody.invalid")(**GET)


def test_who_does_not_answer_is_waited_for_as_long_as_was_said(ask: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ReadTimeoutError):
            ask(url, read_timeout=0.2)(**GET)


def test_who_does_not_take_the_call_is_waited_for_as_long_as_was_said(ask: Any) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        # The queue of one that never accepts is full after these.
        waiting = []
        for _number in range(4):
            each = socket.socket()
            each.setblocking(False)
            each.connect_ex(address)
            waiting.append(each)
        try:
            with pytest.raises((ConnectTimeoutError, ReadTimeoutError)):
                ask(f"http://127.0.0.1:{address[1]}", connect_timeout=0.2, read_timeout=0.2)(**GET)
        finally:
            for each in waiting:
                each.close()


def test_a_connection_that_was_closed_meanwhile_is_not_used_again(endpoint: Endpoint) -> None:
    way = lean(endpoint.url)
    # An answer of this kind closes the connection without saying so.
    endpoint.headers = {"Content-Length": "2"}
    for _request in range(5):
        closed = endpoint.closed
        assert way.send("GetItem", GET) == {}
        wait_until(lambda closed=closed: endpoint.closed > closed)


def test_a_proxy_is_left_to_botocore(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = botocores("https://dynamodb.eu-central-1.amazonaws.com")
    assert may_go_lean(outside)

    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    assert not may_go_lean(outside)

    monkeypatch.setenv("NO_PROXY", ".amazonaws.com")
    assert may_go_lean(outside)


def test_fips_endpoints_are_left_to_botocore() -> None:
    assert not may_go_lean(botocores("https://example.org", use_fips_endpoint=True))


def test_tls_trusts_whom_botocore_trusts(tmp_path: Any) -> None:
    made = botocores("https://dynamodb.eu-central-1.amazonaws.com")

    usual = LeanWay(made, KEYS, None)._pool
    told = LeanWay(made, KEYS, str(tmp_path / "ca.pem"))._pool

    assert (usual.scheme, usual.port) == ("https", None)
    assert usual.cert_reqs == told.cert_reqs == "CERT_REQUIRED"
    assert usual.ca_certs.endswith("cacert.pem")
    assert told.ca_certs == str(tmp_path / "ca.pem")


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("switch", [True, False])
def test_one_switch_sends_everything_by_botocore(
    monkeypatch: pytest.MonkeyPatch, switch: bool
) -> None:
    monkeypatch.setattr(django_settings, "DYNAMODB_LEAN", switch)
    dynamo_client.reset()
    try:
        seen: list[str] = []
        made = dynamo_client.client()
        made.meta.events.register(
            "before-send.dynamodb", lambda event_name, **_: seen.append(event_name)
        )
        dynamo_client.send("GetItem", GET)
        dynamo_client.send("DescribeTable", {"TableName": "users"})
    finally:
        dynamo_client.reset()

    assert [name.rpartition(".")[2] for name in seen] == (
        ["DescribeTable"] if switch else ["GetItem", "DescribeTable"]
    )


def test_every_operation_of_the_short_way_is_one_of_botocores(endpoint: Endpoint) -> None:
    model = botocores(endpoint.url).meta.service_model
    assert set(model.operation_names) >= OPERATIONS
