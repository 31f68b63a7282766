"""The direct path sends, accepts and raises what botocore does."""

from __future__ import annotations

import gzip
import json
import logging
import signal
import socket
import ssl
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import (
    ChecksumError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
)
from django.conf import settings as django_settings
from hypothesis import given, settings, strategies as st

from dynamo import DynamoError, Unavailable
from dynamo.client import connections, endpoints, sending
from dynamo.client.credentials import ProcessCredentials
from dynamo.client.lean import OPERATIONS, LeanClient, _signing_key, can_bypass_botocore
from dynamo.client.retries import Fault, fault_of
from dynamo.runtime.deadline import within
from tests.faults.proxy import through
from tests.waiting import wait_until

KEYS = Credentials("AKID", "secret")
#: With it, the endpoint comes from botocore's rules and not from the environment.
TABLE: Any = {"ignore_configured_endpoint_urls": True}
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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        named = {name.lower(): value.strip() for name, value in self.headers.items()}
        self.server.asked.append(({**named, ":path": self.path}, body))
        answer = self.server.answer(body)
        self.send_response(self.server.status)
        for name, value in {"Content-Length": len(answer), **self.server.headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(answer)
        self.close_connection = "Content-Length" in self.server.headers

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


class Endpoint(ThreadingHTTPServer):
    """An HTTP server that records its requests and gives the answers of a test."""

    def __init__(self, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        #: The headers (in lower case) and body of each request.
        self.asked: list[tuple[dict[str, str], bytes]] = []
        self.opened = self.closed = 0
        self.begin()
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        self.port = self.server_address[1]
        named = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{named}:{self.port}"

    def begin(self) -> None:
        """Forget the requests and the answers of an earlier test."""
        self.asked.clear()
        self.status, self.body = 200, b"{}"
        self.headers: dict[str, str] = {}
        #: Makes the answer from the body of the request.
        self.answer: Callable[[bytes], bytes] = lambda _asked: self.body

    def process_request(self, request: Any, client_address: Any) -> None:
        self.opened += 1
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing when a client disconnects."""

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.closed += 1

    def close(self) -> None:
        self.shutdown()
        self.server_close()


@pytest.fixture(scope="module")
def http() -> Iterator[Endpoint]:
    with closing(Endpoint()) as server:
        yield server


@pytest.fixture
def endpoint(http: Endpoint) -> Endpoint:
    http.begin()
    return http


def botocores(
    url: str | None, credentials: Any = KEYS, region: str = "eu-central-1", **config: Any
) -> Any:
    config |= {"user_agent": "test", "retries": {"total_max_attempts": 1, "mode": "legacy"}}
    made = endpoints.session(credentials, region).create_client(
        "dynamodb", region, endpoint_url=url, config=Config(parameter_validation=False, **config)
    )
    connections.bound(made._endpoint.http_session)
    return made


def lean(url: str | None, credentials: Any = KEYS, **config: Any) -> LeanClient:
    return LeanClient(botocores(url, credentials, **config), credentials)


@cache
def both_ways(url: str) -> tuple[LeanClient, Any]:
    """Both clients of an endpoint, made once, because that is slow."""
    return lean(url), botocores(url)


Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=["lean", "botocore"])
def ask(request: pytest.FixtureRequest, http: Endpoint) -> Callable[..., Ask]:
    """GetItem by either path; both must pass the test."""

    def of(url: str, **config: Any) -> Ask:
        of_endpoint = both_ways(url) if url == http.url and not config else None
        if request.param == "lean":
            way = of_endpoint[0] if of_endpoint else lean(url, **config)
            return lambda **asked: way.send("GetItem", asked)
        made: Ask = (of_endpoint[1] if of_endpoint else botocores(url, **config)).get_item
        return made

    return of


@settings(max_examples=25)
@given(ITEMS)
def test_requests_have_the_bodies_that_botocore_makes_and_answers_are_read_alike(
    http: Endpoint, item: dict[str, Any]
) -> None:
    http.begin()
    lean_way, botocores_way = both_ways(http.url)
    request = {
        "TransactItems": [{"Put": {"TableName": "users", "Item": item}}],
        "ClientRequestToken": "token",
        "ReturnConsumedCapacity": "TOTAL",
    }

    lean_way.send("TransactWriteItems", request)
    botocores_way.transact_write_items(**request)
    ours, theirs = (json.loads(body) for _headers, body in http.asked)
    assert ours == theirs

    http.body = json.dumps({"Item": ours["TransactItems"][0]["Put"]["Item"]}).encode()
    assert lean_way.send("GetItem", GET)["Item"] == botocores_way.get_item(**GET)["Item"] == item


@pytest.mark.parametrize(
    ("host", "region", "token", "path"),
    [
        ("127.0.0.1", "eu-central-1", None, ""),
        ("127.0.0.1", "us-gov-west-1", "a token", "/below/it"),
        ("127.0.0.1", "eu-central-1", " one between blanks ", "/a b/../c//d~*%20"),
        ("::1", "eu-central-1", "a token", "/below"),
    ],
)
def test_a_request_has_the_headers_and_the_signature_that_botocore_sends(
    host: str, region: str, token: str | None, path: str
) -> None:
    try:
        endpoint = Endpoint(host)
    except OSError:
        pytest.skip(f"no {host} here")
    keys = Credentials("AKID", "secret", token)
    made = botocores(endpoint.url + path, keys, region)
    way = LeanClient(made, keys)

    with closing(endpoint):
        dates: set[str] = set()
        # In the same second, so that the signatures are equal.
        while len(dates) != 1:
            endpoint.begin()
            way.send("GetItem", GET)
            made.get_item(**GET)
            ours, theirs = (headers for headers, _body in endpoint.asked)
            dates = {ours["x-amz-date"], theirs["x-amz-date"]}

    # These two describe botocore's own retries and are not signed.
    assert theirs.keys() - ours.keys() == {"amz-sdk-invocation-id", "amz-sdk-request"}
    assert ours.items() <= theirs.items()
    assert ("x-amz-security-token" in ours) == (token is not None)


def test_requests_are_signed_for_the_region_that_the_rules_name() -> None:
    """In botocore's rules, the region `local` is such a one."""
    frozen = KEYS.get_frozen_credentials()
    signed = lean(None, region="local", **TABLE)._signer.headers("GetItem", b"{}", frozen, 0)

    assert "/19700101/us-east-1/dynamodb/" in signed["Authorization"]


def test_the_signing_key_of_a_day_is_not_used_on_the_next(endpoint: Endpoint) -> None:
    def signed(epoch_seconds: float) -> str:
        frozen = KEYS.get_frozen_credentials()
        headers = both_ways(endpoint.url)[0]._signer.headers(
            "GetItem", b"{}", frozen, epoch_seconds
        )
        return headers["Authorization"]

    today = time.time()
    tomorrow = time.time() + 86_400
    signed(today)
    after_today = signed(tomorrow)
    _signing_key.cache_clear()

    assert signed(tomorrow) == after_today


@pytest.mark.parametrize(
    ("made", "error"),
    [
        # Made in the test: its thread asks again later, when other tests have set a key.
        (ProcessCredentials, NoCredentialsError),
        (partial(Credentials, "AK\nID", "secret"), HTTPClientError),
    ],
    ids=["no credentials", "some that cannot be sent"],
)
def test_nothing_is_sent_without_usable_credentials(
    endpoint: Endpoint, ask: Any, made: Any, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(error):
        ask(endpoint.url, credentials=made())(**GET)
    assert endpoint.asked == []


def _error(kind: str, **more: Any) -> dict[str, Any]:
    return {"__type": f"com.amazonaws.dynamodb.v20120810#{kind}", **more}


ERRORS = {
    "a refusal with the stored item": _error(
        "ConditionalCheckFailedException",
        message="The conditional request failed",
        Item={"pk": {"S": "a"}, "blob": {"B": "aGVsbG8="}},
    ),
    "a canceled transaction": _error(
        "TransactionCanceledException",
        Message="Transaction cancelled",
        CancellationReasons=[
            {"Code": "None"},
            {"Code": "ConditionalCheckFailed", "Item": {"pk": {"S": "a"}}, "Message": "no"},
        ],
    ),
    "a fault of the server": _error("InternalServerError", message="sorry"),
    "an unknown code": {
        "__type": "com.amazon.coral.service#ExpiredTokenException",
        "message": "expired",
    },
    "a code with a colon": {"__type": "ThrottlingException:http://x", "message": "slow"},
    "no code": {"message": "what?"},
    "an empty body": "",
    "no JSON": "<html>Bad Gateway</html>",
}
STATUS = {"a fault of the server": 500, "an empty body": 503, "no JSON": 502}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_equal_to_those_of_botocore(endpoint: Endpoint, name: str) -> None:
    said = ERRORS[name]
    endpoint.status = STATUS.get(name, 400)
    endpoint.body = (said if isinstance(said, str) else json.dumps(said)).encode()
    endpoint.headers = {"x-amzn-RequestId": "an-id"}

    way, made = both_ways(endpoint.url)
    with pytest.raises(ClientError) as ours:
        way.send("GetItem", GET)
    with pytest.raises(ClientError) as theirs:
        made.get_item(**GET)

    assert type(ours.value).__name__ == type(theirs.value).__name__
    # botocore mentions its own retries, which are off.
    assert str(ours.value) == str(theirs.value).replace(" (reached max retries: 0)", "")
    assert _without_transport(ours.value.response) == _without_transport(theirs.value.response)


def _without_transport(response: Any) -> dict[str, Any]:
    metadata = response["ResponseMetadata"]
    kept = {name: metadata.get(name) for name in ("HTTPStatusCode", "RequestId")}
    return {**response, "ResponseMetadata": kept}


def test_an_answer_with_a_wrong_checksum_is_rejected(endpoint: Endpoint, ask: Any) -> None:
    endpoint.body = b'{"Item": {"pk": {"S": "a"}}}'
    get = ask(endpoint.url)
    endpoint.headers = {"x-amz-crc32": str(zlib.crc32(endpoint.body))}
    assert get(**GET)["Item"] == {"pk": {"S": "a"}}

    endpoint.headers = {"x-amz-crc32": str(zlib.crc32(endpoint.body) ^ 1)}
    with pytest.raises(ChecksumError):
        get(**GET)


OK = b"HTTP/1.1 200 OK\r\n"
ANSWER = b'Content-Length: 12\r\n\r\n{"Item": {}}'
#: Rarer forms of answers. Usually an answer has a length, and its connection stays open.
FORMS_OF_ANSWERS = {
    "in chunks": OK + b"Transfer-Encoding: chunked\r\n\r\n"
    b'5;a=b\r\n{"Ite\r\n7\r\nm": {}}\r\n0\r\nTrailer: a\r\n\r\n',
    "after an interim answer": b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + OK + ANSWER,
    "with the lines of Unix": (OK + ANSWER).replace(b"\r\n", b"\n"),
    "until the end": OK + b'\r\n{"Item": {}}',
    "to be closed": OK + b"Connection: Close\r\n" + ANSWER,
    "of HTTP/1.0": b"HTTP/1.0 200 OK\r\n" + ANSWER,
}
FORMS_THAT_CLOSE = {"until the end", "to be closed", "of HTTP/1.0"}


@pytest.mark.parametrize("form", FORMS_OF_ANSWERS)
def test_answers_in_every_form_of_http_are_read(ask: Any, form: str) -> None:
    times = 2 if form in FORMS_THAT_CLOSE else 1
    with answering(FORMS_OF_ANSWERS[form], times) as url:
        get = ask(url, read_timeout=5)
        assert [get(**GET)["Item"] for _ in range(times)] == [{}] * times


NOT_HTTP = {
    "nothing": b"",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "a status that is not a number": b"HTTP/1.1 OK\r\n\r\n",
    "a line without end": OK + b"A: " + b"a" * 70_000,
    "too many headers": OK + b"A: a\r\n" * 200 + b"\r\n",
    "a length that is not a number": OK + b"Content-Length: x\r\n\r\n",
    "a size of a chunk that is not a number": OK + b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
    "a chunk that ends early": OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{",
    "a body that ends early": OK + b"Content-Length: 9\r\n\r\n{}",
}


@pytest.mark.parametrize("kind", NOT_HTTP)
def test_an_answer_that_is_not_http_counts_as_a_lost_reply(kind: str) -> None:
    with answering(NOT_HTTP[kind]) as url, pytest.raises(HTTPClientError) as raised:
        lean(url, read_timeout=5).send("GetItem", GET)
    assert fault_of(raised.value) is Fault.MAYBE_DONE


@contextmanager
def answering(answer: bytes, times: int = 1) -> Iterator[str]:
    """A server that gives one answer on each of its connections, and closes them."""

    def serve() -> None:
        for _ in range(times):
            connection, _address = server.accept()
            with connection, connection.makefile("rb") as reader:
                size = next(
                    int(line.partition(b":")[2])
                    for line in reader
                    if line.lower().startswith(b"content-length:")
                )
                while reader.readline() != b"\r\n":
                    pass
                assert len(reader.read(size)) == size
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(timeout=60)


@pytest.mark.parametrize("status", [200, 502])
@pytest.mark.parametrize(
    "body",
    [b"{", gzip.compress(b"{}"), b'{"Item": {"a": {"B": "x"}}}'],
    ids=["cut off", "compressed", "no base64"],
)
def test_a_reply_of_another_kind_of_server_counts_as_a_lost_reply(
    endpoint: Endpoint, body: bytes, status: int
) -> None:
    """botocore accepts some of these replies, and raises foreign errors for others."""
    endpoint.status, endpoint.body = status, body
    endpoint.headers = {"Content-Encoding": "gzip"} if body.startswith(b"\x1f") else {}
    with pytest.raises((HTTPClientError, ClientError)) as raised:
        both_ways(endpoint.url)[0].send("GetItem", GET)

    assert fault_of(raised.value) is Fault.MAYBE_DONE


def test_a_null_in_the_answer_is_an_absent_value(endpoint: Endpoint, ask: Any) -> None:
    endpoint.body = b'{"Item": null, "ConsumedCapacity": null}'
    assert ask(endpoint.url)(**GET).keys() <= {"ResponseMetadata"}


@pytest.mark.parametrize("status", [300, 301, 307])
def test_redirects_are_not_followed(endpoint: Endpoint, ask: Any, status: int) -> None:
    endpoint.status, endpoint.headers = status, {"Location": endpoint.url + "/elsewhere"}
    with pytest.raises(ClientError) as refused:
        ask(endpoint.url)(**GET)

    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert [headers[":path"] for headers, _body in endpoint.asked] == ["/"]


def test_the_read_time_out_applies_to_a_server_that_does_not_answer(ask: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ReadTimeoutError):
            ask(url, read_timeout=0.2)(**GET)


def test_a_connection_that_was_closed_is_not_used_again() -> None:
    # Connections of other tests to a shared endpoint would be counted.
    with closing(Endpoint()) as endpoint:
        way = lean(endpoint.url)
        # The server closes the connection after an answer with this header.
        endpoint.headers = {"Content-Length": "2"}
        for _request in range(5):
            closed = endpoint.closed
            assert way.send("GetItem", GET) == {}
            wait_until(lambda closed=closed: endpoint.closed > closed)


def _echo(asked: bytes) -> bytes:
    return json.dumps({"Item": json.loads(asked)["Key"]}).encode()


def _key(name: object) -> dict[str, Any]:
    return {"pk": {"S": str(name)}}


def test_threads_get_their_own_answers_and_share_the_configured_connections(
    endpoint: Endpoint, ask: Any
) -> None:
    endpoint.answer = _echo
    opened, closed = endpoint.opened, endpoint.closed
    get = ask(endpoint.url, max_pool_connections=2)

    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda number: get(TableName="users", Key=_key(number)), range(64))
        assert [answer["Item"] for answer in answers] == [_key(number) for number in range(64)]

    wait_until(lambda: endpoint.opened - opened - (endpoint.closed - closed) <= 2)


def test_a_request_after_an_interrupted_one_gets_its_own_answer(
    endpoint: Endpoint, ask: Any
) -> None:
    came = threading.Event()
    may_answer = threading.Event()

    def answer(asked: bytes) -> bytes:
        came.set()
        may_answer.wait(120)
        return _echo(asked)

    def interrupt(me: int) -> None:
        came.wait(120)
        signal.pthread_kill(me, signal.SIGUSR1)

    def interrupted(*_signal: Any) -> None:
        raise KeyboardInterrupt

    get = ask(endpoint.url, max_pool_connections=1)
    get(**GET)
    endpoint.answer = answer
    before = signal.signal(signal.SIGUSR1, interrupted)
    try:
        Thread(target=interrupt, args=(threading.get_ident(),)).start()
        with pytest.raises(KeyboardInterrupt):
            get(TableName="users", Key=_key("first"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    may_answer.set()

    assert get(TableName="users", Key=_key("second"))["Item"] == _key("second")


def test_the_log_contains_no_secret(endpoint: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    way = lean(endpoint.url, Credentials("AKID", "the-secret", "the-token"))
    with caplog.at_level(logging.DEBUG, "urllib3"), caplog.at_level(logging.DEBUG):
        way.send("GetItem", {"TableName": "users", "Key": _key("a-name")})

    assert "Starting new HTTP connection" in caplog.text
    for secret in ("the-secret", "the-token", "a-name"):
        assert secret not in caplog.text


# Endpoints, proxies and certificates --------------------------------------------------------------


OUTSIDE = "https://dynamodb.eu-central-1.amazonaws.com"
PROXY = "http://proxy.example.org:3128"
FIPS = {"AWS_USE_FIPS_ENDPOINT": "true"}
#: An endpoint, variables of the environment, and whether botocore has to send.
WAYS: dict[str, tuple[str | None, dict[str, str], bool]] = {
    "the endpoint of the region": (None, {}, False),
    "a proxy for http": (OUTSIDE, {"HTTP_PROXY": PROXY, "NO_PROXY": "example.org"}, False),
    "a proxy": (OUTSIDE, {"HTTPS_PROXY": PROXY, "NO_PROXY": "example.org"}, True),
    "a proxy for others": (OUTSIDE, {"HTTPS_PROXY": PROXY, "NO_PROXY": ".amazonaws.com"}, False),
    "FIPS": (None, FIPS, True),
    "FIPS elsewhere": ("https://example.org", FIPS, True),
    "an address with a query": ("http://127.0.0.1:4/?a=b", {}, True),
    "another protocol": ("ftp://127.0.0.1:4", {}, True),
}


@pytest.mark.parametrize(("url", "variables", "is_botocores"), WAYS.values(), ids=WAYS)
def test_botocore_sends_what_the_direct_path_cannot_send(
    url: str | None, variables: dict[str, str], is_botocores: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    made = botocores(url, **({} if url else TABLE))

    assert can_bypass_botocore(made) != is_botocores


@pytest.mark.parametrize("name", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_nothing_is_sent_unless_the_certificate_is_trusted_and_names_the_host(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    certificate = str(tmp_path / "certificate.pem")
    key = str(tmp_path / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    for item in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(item, raising=False)
    with closing(Endpoint(tls=context)) as secure:
        with pytest.raises(SSLError):
            ask(f"https://localhost:{secure.port}")(**GET)
        monkeypatch.setenv(name, certificate)
        with pytest.raises(SSLError):
            ask(f"https://127.0.0.1:{secure.port}")(**GET)
        assert secure.asked == []
        assert ask(f"https://localhost:{secure.port}")(**GET).keys() <= {"ResponseMetadata"}


@pytest.mark.parametrize("switch", [True, False])
def test_a_setting_sends_everything_by_botocore(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, switch: bool
) -> None:
    monkeypatch.setattr(django_settings, "DYNAMODB_LEAN", switch)
    seen: list[str] = []
    with through(endpoint.url):
        events = sending.client().meta.events
        events.register("before-send.dynamodb", lambda event_name, **_: seen.append(event_name))

        sending.send("GetItem", GET)
        sending.send("DescribeTable", {"TableName": "users"})

    assert [name.rpartition(".")[2] for name in seen] == (
        ["DescribeTable"] if switch else ["GetItem", "DescribeTable"]
    )


def test_every_operation_of_the_direct_path_is_one_of_botocores(endpoint: Endpoint) -> None:
    model = botocores(endpoint.url).meta.service_model
    assert set(model.operation_names) >= OPERATIONS


# Invalid replies: `send` raises errors of `dynamo.exceptions` only --------------------------------

PUT = {"TableName": "users", "Item": GET["Key"]}
TRANSACT = {"TransactItems": [{"Put": PUT}], "ClientRequestToken": "token"}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner),
    max_leaves=6,
)


def some_of(**members: Any) -> Any:
    """An object with some of the `members`, or any JSON."""
    return st.fixed_dictionaries({}, optional=members) | ANY_JSON


CODES = st.sampled_from(
    [
        "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "ResourceNotFoundException",
        "ThrottlingException:http://x",
        "None",
        "ConditionalCheckFailed",
    ]
)
MEMBERS: dict[str, Any] = {
    **dict.fromkeys(["__type", "Code"], CODES | ANY_JSON),
    **dict.fromkeys(["message", "Message"], ANY_JSON),
    "Item": some_of(pk=ANY_JSON),
}
REASONS = st.lists(some_of(**MEMBERS), max_size=3) | ANY_JSON
BODIES = st.one_of(
    some_of(**MEMBERS, CancellationReasons=REASONS).map(lambda body: json.dumps(body).encode()),
    st.binary(max_size=16),
    st.builds(lambda: b"[" * 100_000),
    st.just("<html>Bad Gateway</html>".encode("utf-16")),
)
REQUESTS = st.sampled_from([("GetItem", GET), ("PutItem", PUT), ("TransactWriteItems", TRANSACT)])


@pytest.fixture(scope="module", params=[True, False], ids=["lean", "botocore"])
def engine_of_process(http: Endpoint, request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    """The endpoint that `send` reaches, by the direct path or by botocore's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(django_settings, "DYNAMODB_LEAN", request.param)
        with through(http.url):
            sending.client()
            yield http


@settings(max_examples=25)
@given(request=REQUESTS, status=st.sampled_from([300, 400, 403, 500, 503]), body=BODIES)
def test_every_error_reply_raises_an_error_of_dynamo(
    engine_of_process: Endpoint, request: tuple[str, dict[str, Any]], status: int, body: bytes
) -> None:
    engine_of_process.begin()
    engine_of_process.status, engine_of_process.body = status, body

    with within(0), pytest.raises(DynamoError) as raised:
        sending.send(*request)

    assert str(raised.value)


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("body", [b"\xff\xfe", b"[]", b"null", b"5", b'"text"', b"", b"<p>Hello"])
def test_a_write_with_an_invalid_reply_may_have_been_made(
    engine_of_process: Endpoint, status: int, body: bytes
) -> None:
    engine_of_process.begin()
    engine_of_process.status, engine_of_process.body = status, body

    with within(0), pytest.raises(Unavailable) as raised:
        sending.send("PutItem", PUT)

    assert raised.value.maybe_written


@pytest.mark.parametrize("reasons", [None, [], [{"Code": "None"}], [{"Code": "None"}] * 2])
def test_a_canceled_transaction_without_reasons_is_an_error(
    engine_of_process: Endpoint, reasons: list[Any] | None
) -> None:
    answer = {"__type": "TransactionCanceledException", "CancellationReasons": reasons}
    engine_of_process.begin()
    engine_of_process.status, engine_of_process.body = 400, json.dumps(answer).encode()

    with pytest.raises(DynamoError, match="TransactionCanceledException"):
        sending.send("TransactWriteItems", TRANSACT)
