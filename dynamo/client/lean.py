"""A shorter path for operations on items: signed here, sent on urllib3's connections, read as JSON.

botocore passes each request through about twenty events and converts every value of requests and
answers, which takes two thirds of a client's time. Our requests are in DynamoDB's JSON form
already. Therefore, a request is only a JSON body with one signature here. Its key is made once a
day.

The parts that must be trusted are still botocore's, so that callers see no difference: region and
endpoint, the pool of connections with its TLS and time-outs, the parsing of errors, and the error
classes. A client with a proxy, and every client with `DYNAMODB_LEAN=off`, uses botocore.

This uses three private names of botocore: a client's `_endpoint` (and the names of its HTTP session
that it calls for each request), `_request_signer` and `_ruleset_resolver`. Reading botocore's
settings instead could miss one (REQUESTS_CA_BUNDLE, a region that signs as another). They are read
when the path is made, never while a request is sent: if a version of botocore lacks one,
`client.sending` sends everything through botocore. It also uses the private names of urllib3 by
which a pool lends a connection. `urlopen` prepares for redirects, retries and streams, which takes
a third of a client's time. http.client sends a request header by header and parses the headers of
an answer like those of a mail, with charsets and line folding. That took a fifth of the time
(`benchmarks.client`).

Source of the format of requests and answers: RFC 9112, https://www.rfc-editor.org/rfc/rfc9112
Source of the signature: "Create a signed AWS API request",
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from typing import NamedTuple, cast
from urllib.parse import quote, urlsplit

from botocore import exceptions as botocore_errors
from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.model import Shape
from botocore.parsers import JSONParser, ResponseParser, ResponseParserError, ResponseParserFactory
from botocore.utils import get_environ_proxies, normalize_url_path
from urllib3 import HTTPConnectionPool, exceptions as urllib3_errors
from urllib3.connection import HTTPConnection
from urllib3.util.ssl_match_hostname import CertificateError

from dynamo.client.private import Client
from dynamo.wire.types import Answer, Reason
from dynamo.wire.values import as_base64, with_bytes

OPERATIONS = {
    "BatchGetItem",
    "BatchWriteItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "Scan",
    "TransactGetItems",
    "TransactWriteItems",
    "UpdateItem",
}

_as_json = json.JSONEncoder(default=as_base64).encode

_CONTENT_TYPE = "application/x-amz-json-1.0"
_PORTS = {"http": 80, "https": 443}

_Kinds = type[Exception] | tuple[type[Exception], ...]

#: The error of botocore for an error of a connection. The first row that matches counts.
_ERRORS: tuple[tuple[_Kinds, type[botocore_errors.BotoCoreError]], ...] = (
    ((ssl.SSLError, CertificateError), botocore_errors.SSLError),
    (urllib3_errors.NewConnectionError, botocore_errors.EndpointConnectionError),
    (urllib3_errors.ConnectTimeoutError, botocore_errors.ConnectTimeoutError),
    (TimeoutError, botocore_errors.ReadTimeoutError),
    ((OSError, HTTPException), botocore_errors.ConnectionClosedError),
)

#: The most bytes of an answer's head: the limit of http.client for a line.
_MAX_HEAD = 65536
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_END_OF_LINE = re.compile(rb"\r?\n")

#: The most bytes that are received at once. Most answers are smaller.
_PIECE = 65536


def can_bypass_botocore(client: Client) -> bool:
    """Whether botocore would sign as this module does, and send directly to the endpoint."""
    url = client.meta.endpoint_url
    parts = urlsplit(url)
    return (
        # With rules (see `client.endpoints`), each request may have another endpoint.
        client._ruleset_resolver is None
        and client._request_signer.signature_version == "v4"
        and parts.scheme in _PORTS
        and not parts.query
        and parts.scheme not in get_environ_proxies(url)
    )


class LeanClient:
    """Sends requests as the botocore `client` would: same endpoint, `credentials` and connections.

    Thread-safe. A forked child makes its own.

    Raises:
        AttributeError, TypeError: botocore or urllib3 lacks a private name that this relies on.
    """

    def __init__(self, client: Client, credentials: Credentials) -> None:
        self._client = client
        self._credentials = credentials
        self._url = client.meta.endpoint_url
        path = urlsplit(self._url).path or "/"
        self._target = quote(path, safe="/%:@!$&'()*+,;=~")
        region: str = client._request_signer.region_name
        self._signer = _Signer(_host(self._url), path, region)
        pool = _pool(client)
        self._borrow = cast("Callable[[], HTTPConnection]", pool._get_conn)
        self._give_back = pool._put_conn
        self._connect_seconds = cast("float | None", pool.timeout.connect_timeout)
        self._read_seconds = pool.timeout.read_timeout
        self._parser = AnswerParser()

    def send(self, operation: str, request: Mapping[str, object]) -> Answer:
        """Send one request once. Returns botocore's answer without its metadata.

        Raises:
            BotoCoreError, ClientError: as botocore's client.
        """
        body = _as_json(request).encode()
        frozen = self._credentials.get_frozen_credentials()
        headers = self._signer.headers(operation, body, frozen, time.time())
        headers["User-Agent"] = self._client.meta.config.user_agent
        # The CRC is that of the received bytes.
        headers["Accept-Encoding"] = "identity"
        headers["Content-Length"] = str(len(body))
        answer = self._exchange(body, headers)
        _check_crc(answer.headers.get("x-amz-crc32"), answer.data)
        if answer.status >= 300:
            raise self._error(operation, answer)
        return _read(answer.data)

    def _exchange(self, body: bytes, headers: dict[str, str]) -> HttpAnswer:
        try:
            connection = self._borrow()
            try:
                if connection.sock is None:
                    connection.timeout = self._connect_seconds
                    connection.connect()
                connection.sock.settimeout(self._read_seconds)
                return exchange(connection, self._target, headers, body)
            except BaseException:
                # The next request must not read the rest of this answer.
                connection.close()
                raise
            finally:
                self._give_back(connection)
        except (urllib3_errors.HTTPError, HTTPException, OSError, ValueError) as error:
            for kinds, raised in _ERRORS:
                if isinstance(error, kinds):
                    raise raised(endpoint_url=self._url, error=error) from error
            # A ValueError is a line break in a header, for example in pasted credentials.
            raise botocore_errors.HTTPClientError(error=error) from error

    def _error(self, operation: str, answer: HttpAnswer) -> Exception:
        """The error that botocore's client would raise."""
        raw = {"status_code": answer.status, "headers": answer.headers, "body": answer.data}
        model = self._client.meta.service_model
        parsed = self._parser.parse(raw, model.operation_model(operation).output_shape)
        code = parsed.get("Error", {}).get("Code", "")
        shape = model.shape_for_error_code(code)
        if shape is not None:
            parsed.update(self._parser.parse(raw, shape))
        return self._client.exceptions.from_code(code)(parsed, operation)


class HttpAnswer(NamedTuple):
    """The complete answer of the endpoint. Names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    data: bytes


def exchange(
    connection: HTTPConnection, target: str, headers: Mapping[str, str], body: bytes
) -> HttpAnswer:
    """POST `body` on the open `connection`. Closes the connection if the server will close it.

    Raises:
        ValueError: a header cannot be sent, for example because of a line break.
        OSError, HTTPException: no complete answer came.
    """
    head = "\r\n".join(
        [f"POST {target} HTTP/1.1", *map(": ".join, headers.items()), "", ""]
    ).encode("latin-1")
    if head.count(b"\n") != len(headers) + 2 or head.count(b"\r") != len(headers) + 2:
        raise ValueError("a header contains a line break")
    connection.send(head + body)
    answer, stays_open = _answer(_Reader(connection.sock))
    if not stays_open:
        connection.close()
    return answer


def _answer(reader: _Reader) -> tuple[HttpAnswer, bool]:
    """The answer, and whether the connection can be used again."""
    status = 100
    while status < 200:  # an interim response, such as 100 Continue, has only headers
        first, *lines = reader.until(_END_OF_HEAD).splitlines()
        version, status = _status(first)
        headers = dict(map(_header, lines))
    if status in (204, 304):
        data = b""
    elif "chunked" in headers.get("transfer-encoding", "").lower():
        data = b"".join(iter(lambda: _chunk(reader), b""))
        while reader.until(_END_OF_LINE):  # trailers
            pass
    elif (length := headers.get("content-length")) is not None:
        data = reader.exactly(int(length))
    else:
        return HttpAnswer(status, headers, reader.rest()), False
    stays_open = version == b"HTTP/1.1" and headers.get("connection", "").lower() != "close"
    return HttpAnswer(status, headers, data), stays_open


def _status(line: bytes) -> tuple[bytes, int]:
    version, _, rest = line.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise HTTPException(f"This is not a status line: {line!r}")
    return version, int(rest[:3])


def _header(line: bytes) -> tuple[str, str]:
    name, _colon, value = line.decode("latin-1").partition(":")
    return name.strip().lower(), value.strip()


def _chunk(reader: _Reader) -> bytes:
    """The next chunk; the last one is empty."""
    size = int(reader.until(_END_OF_LINE).partition(b";")[0], 16)
    data = reader.exactly(size)
    if size:
        reader.until(_END_OF_LINE)
    return data


class _Reader:
    """Reads one answer. Most answers arrive as one piece, head and body together."""

    def __init__(self, sock: socket.socket) -> None:
        self._receive = sock.recv
        #: The bytes that were received and not read yet.
        self._left = b""

    def until(self, end: re.Pattern[bytes]) -> bytes:
        """The bytes before the next `end`, which is read as well."""
        while (found := end.search(self._left)) is None:
            if len(self._left) > _MAX_HEAD:
                raise HTTPException("A line or the head of the answer is too long.")
            received = self._receive(_PIECE)
            if not received:
                raise RemoteDisconnected("The connection was closed before the answer was whole.")
            self._left += received
        taken = self._left[: found.start()]
        self._left = self._left[found.end() :]
        return taken

    def exactly(self, size: int) -> bytes:
        data = self._left if len(self._left) >= size else self.rest(size)
        self._left = data[size:]
        if len(data) < size:
            raise IncompleteRead(data, size - len(data))
        return data[:size]

    def rest(self, size: float = math.inf) -> bytes:
        """What is received until the server closes the connection, or until it is `size` bytes."""
        pieces = [self._left]
        received = len(self._left)
        while received < size and (piece := self._receive(_PIECE)):
            pieces.append(piece)
            received += len(piece)
        return b"".join(pieces)


class _Signer:
    """Signature Version 4 for one endpoint."""

    def __init__(self, host: str, path: str, region: str) -> None:
        self._host = host
        self._canonical_path = quote(normalize_url_path(path), safe="/~")
        self._region = region

    def headers(
        self, operation: str, body: bytes, credentials: ReadOnlyCredentials, epoch_seconds: float
    ) -> dict[str, str]:
        """The headers of a request with this body, all of them signed."""
        stamp = _stamp(int(epoch_seconds))
        # In the order of their names, as they are signed.
        signed = {"content-type": _CONTENT_TYPE, "host": self._host, "x-amz-date": stamp}
        if credentials.token:
            # A header is signed without surrounding blanks.
            signed["x-amz-security-token"] = credentials.token.strip()
        signed["x-amz-target"] = f"DynamoDB_20120810.{operation}"
        names = ";".join(signed)
        lines = "".join([f"{name}:{value}\n" for name, value in signed.items()])
        canonical = (
            f"POST\n{self._canonical_path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        )
        scope = f"{stamp[:8]}/{self._region}/dynamodb/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
        key = _signing_key(str(credentials.secret_key), stamp[:8], self._region)
        signature = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
        authorization = (
            f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return {**signed, "Authorization": authorization}


@lru_cache(maxsize=1)
def _stamp(epoch_seconds: int) -> str:
    """The time of a signature: the same for all requests of a second, because it takes 3 µs."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(epoch_seconds))


@lru_cache(maxsize=4)
def _signing_key(secret: str, date: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (date, region, "dynamodb", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _host(url: str) -> str:
    """The Host header: with the port, unless it is the scheme's default."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, _PORTS[parts.scheme]) else f"{host}:{parts.port}"


def _pool(client: Client) -> HTTPConnectionPool:
    """botocore's pool of connections to its endpoint, with its TLS, time-outs and size."""
    http = client._endpoint.http_session
    url = client.meta.endpoint_url
    pool = http._get_connection_manager(url).connection_from_url(url)
    # botocore sets the certificates before each request.
    http._setup_ssl_cert(pool, url, http._verify)
    return pool


# An answer without these marks has no binary values. The name of their type may be escaped.
_MAYBE_BINARY = (b'"B"', b'"BS"', b"\\u")


def _check_crc(expected: str | None, data: bytes) -> None:
    found = str(zlib.crc32(data))
    if expected is not None and expected.strip() != found:
        raise botocore_errors.ChecksumError(
            checksum_type="crc32", expected_checksum=expected, actual_checksum=found
        )


def _read(data: bytes) -> Answer:
    """The answer to a successful request.

    Raises:
        HTTPClientError: it cannot be read; the request may have been carried out.
    """
    try:
        # Most answers have no binary values. Without the hook, they are read four times as fast.
        may_be_binary = any(mark in data for mark in _MAYBE_BINARY)
        read = json.loads(data, object_hook=with_bytes if may_be_binary else None)
        if not isinstance(read, dict):
            raise ValueError("not an object")
    except UNREADABLE as error:
        raise botocore_errors.HTTPClientError(error=error) from error
    # botocore leaves out null members as well.
    return cast(Answer, {name: value for name, value in read.items() if value is not None})


#: The errors of reading an answer of an unexpected form (RecursionError: deep nesting).
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)


class AnswerParser(JSONParser):
    """botocore's parser, for answers that may not be DynamoDB's.

    A proxy, a load balancer or a captive portal may answer instead, with text that is not UTF-8,
    JSON that is not an object, or members of other types. For these, botocore's parser raises many
    kinds of errors, or reports a success. Here, each of them is an `HTTPClientError`, as for a lost
    reply.
    """

    #: A method of botocore that its stubs lack.
    _parse_shape: Callable[[object, object], object]

    def parse(self, response: Mapping[str, object], shape: Shape) -> Answer:
        """Like botocore's method. Codes and messages of errors and reasons are strings."""
        try:
            parsed = super().parse(response, shape)
            if not isinstance(parsed, dict):
                raise ValueError("not an object")
            _check_error(parsed.get("Error", {}))
            for reason in parsed.get("CancellationReasons") or ():
                _check_error(reason)
        except (*UNREADABLE, ResponseParserError) as error:
            raise botocore_errors.HTTPClientError(error=error) from error
        return cast(Answer, parsed)

    def _handle_json_body(self, raw_body: bytes, shape: object) -> object:
        # botocore's parser reads text that is not JSON as an object without these members.
        return self._parse_shape(shape, json.loads(raw_body))


class AnswerParserFactory(ResponseParserFactory):
    """The parsers of a botocore session: `AnswerParser` for DynamoDB, else botocore's."""

    def create_parser(self, protocol_name: str) -> ResponseParser:
        return AnswerParser() if protocol_name == "json" else super().create_parser(protocol_name)


def _check_error(error: Reason) -> None:
    # The message may be absent or null. The code is always there.
    message = error.get("Message")
    error["Message"] = "" if message is None else message
    for name in ("Code", "Message"):
        if not isinstance(error.get(name, ""), str):
            raise ValueError(f"{name} is not a string")
