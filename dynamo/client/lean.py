"""A shorter way for the operations on items: signed here, sent by urllib3, read as JSON.

botocore puts each request through some twenty events and walks value by value through what goes out
and comes in: two thirds of what a request costs a client. Ours is on the wire's form already. So
here a request is a JSON body under one signature, whose key is made once a day.

What must be trusted stays botocore's: region and endpoint, the pool of connections with its TLS and
time-outs, the parsing of errors, and the classes of what is raised, so that callers see no
difference. What this way does not know (proxies), and with `DYNAMODB_LEAN=off` everything, goes
through botocore.

Of botocore's private names it takes three: a client's `_endpoint` (and of its HTTP session what
that calls for each request), `_request_signer` and `_ruleset_resolver`. To read its settings once
more instead would be to miss one (REQUESTS_CA_BUNDLE, a region that signs as another). They are
read when the way is made, never while a request is sent: if a version of botocore lacks one,
`dynamo.client.sending` sends everything through botocore.

Source of the signature: "Create a signed AWS API request",
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import urllib3
from botocore.credentials import Credentials
from botocore.exceptions import (
    ChecksumError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)
from botocore.parsers import JSONParser, ResponseParserError, ResponseParserFactory
from botocore.utils import get_environ_proxies, normalize_url_path
from urllib3 import exceptions as broken

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

_CONTENT_TYPE = "application/x-amz-json-1.0"
_ONCE = urllib3.Retry(False)
_PORTS = {"http": 80, "https": 443}


def may_go_lean(client: Any) -> bool:
    """Whether botocore would sign as is done here, and send to the `client`'s endpoint directly."""
    url = client.meta.endpoint_url
    parts = urlsplit(url)
    return (
        # With rules (see `dynamo.client.addressing`) each request may go to another endpoint.
        client._ruleset_resolver is None
        and client._request_signer.signature_version == "v4"
        and parts.scheme in _PORTS
        and not parts.query
        and parts.scheme not in get_environ_proxies(url)
    )


class LeanWay:
    """Sends as the botocore `client` would: same endpoint, `credentials` and connections.

    Safe in threads; a forked child makes its own.

    Raises:
        AttributeError, TypeError: botocore lacks a private name that this way relies on.
    """

    def __init__(self, client: Any, credentials: Credentials) -> None:
        self._client = client
        self._credentials = credentials
        self._url = client.meta.endpoint_url
        self._path = urlsplit(self._url).path or "/"
        region: str = client._request_signer.region_name
        self._signer = _Signer(_host(self._url), self._path, region)
        self._pool = _pool(client)
        self._parser = AnswerParser()

    def send(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request once; the answer as botocore's client gives it, but for metadata.

        Raises:
            BotoCoreError, ClientError: as botocore's client.
        """
        body = json.dumps(request, default=_encoded).encode()
        frozen = self._credentials.get_frozen_credentials()
        headers = self._signer.headers(operation, body, frozen, time.time())
        # In its usual place urllib3 would add its own.
        headers["User-Agent"] = self._client.meta.config.user_agent
        headers["Accept-Encoding"] = "identity"
        answer = self._exchange(body, headers)
        _check_crc(answer.headers.get("x-amz-crc32"), answer.data)
        if answer.status >= 300:
            raise self._error(operation, answer)
        return _read(answer.data)

    def _exchange(self, body: bytes, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        url = self._url
        try:
            return self._pool.urlopen(
                "POST",
                self._path,
                body,
                headers,
                retries=_ONCE,
                redirect=False,
                assert_same_host=False,
                # The CRC is that of what came, and nothing else was asked for.
                decode_content=False,
            )
        except broken.SSLError as error:
            raise SSLError(endpoint_url=url, error=error) from error
        except (broken.NewConnectionError, socket.gaierror) as error:
            raise EndpointConnectionError(endpoint_url=url, error=error) from error
        except broken.ConnectTimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=url, error=error) from error
        except broken.ReadTimeoutError as error:
            raise ReadTimeoutError(endpoint_url=url, error=error) from error
        except broken.ProtocolError as error:
            raise ConnectionClosedError(endpoint_url=url, error=error) from error
        except (broken.HTTPError, OSError, ValueError) as error:
            # A ValueError is a line break in a header: credentials that were pasted, say.
            raise HTTPClientError(error=error) from error

    def _error(self, operation: str, answer: urllib3.BaseHTTPResponse) -> Exception:
        """The error that botocore makes of the answer, with the members that its model has."""
        raw = {
            "status_code": answer.status,
            "headers": {name.lower(): value for name, value in answer.headers.items()},
            "body": answer.data,
        }
        model = self._client.meta.service_model
        parsed = self._parser.parse(raw, model.operation_model(operation).output_shape)
        code = parsed.get("Error", {}).get("Code")
        shape = model.shape_for_error_code(code)
        if shape is not None:
            parsed.update(self._parser.parse(raw, shape))
        made: Exception = self._client.exceptions.from_code(code)(parsed, operation)
        return made


class _Signer:
    """Signature Version 4 for one endpoint. The key of a day and of credentials is kept."""

    def __init__(self, host: str, path: str, region: str) -> None:
        self._host = host
        self._canonical_path = quote(normalize_url_path(path), safe="/~")
        self._region = region
        self._kept: tuple[tuple[str, str], bytes] | None = None

    def headers(
        self, operation: str, body: bytes, credentials: Any, epoch_seconds: float
    ) -> dict[str, str]:
        """The headers of a request with this body, at this time; signed, all of them."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(epoch_seconds))
        headers = {
            "Content-Type": _CONTENT_TYPE,
            "Host": self._host,
            "X-Amz-Date": stamp,
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        }
        if credentials.token:
            # A header is signed without the blanks around it.
            headers["X-Amz-Security-Token"] = credentials.token.strip()
        named = sorted((name.lower(), value) for name, value in headers.items())
        names = ";".join(name for name, _value in named)
        lines = "".join(f"{name}:{value}\n" for name, value in named)
        canonical = (
            f"POST\n{self._canonical_path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        )
        scope = f"{stamp[:8]}/{self._region}/dynamodb/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
        key = self._key(credentials.secret_key, stamp[:8])
        signature = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return headers

    def _key(self, secret: str, date: str) -> bytes:
        kept = self._kept
        if kept is not None and kept[0] == (secret, date):
            return kept[1]
        key = f"AWS4{secret}".encode()
        for part in (date, self._region, "dynamodb", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        # In one assignment, as other threads sign meanwhile.
        self._kept = (secret, date), key
        return key


def _host(url: str) -> str:
    """The host as it is signed and sent: with its port, unless that is the scheme's own."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, _PORTS[parts.scheme]) else f"{host}:{parts.port}"


def _pool(client: Any) -> urllib3.HTTPConnectionPool:
    """botocore's own pool of connections to its endpoint, which has its TLS, time-outs and size."""
    http, url = client._endpoint.http_session, client.meta.endpoint_url
    pool: urllib3.HTTPConnectionPool = http._get_connection_manager(url).connection_from_url(url)
    # Whom to trust: botocore tells its pool before each request.
    http._setup_ssl_cert(pool, url, http._verify)
    return pool


def _check_crc(told: str | None, data: bytes) -> None:
    found = str(zlib.crc32(data))
    if told is not None and told.strip() != found:
        raise ChecksumError(checksum_type="crc32", expected_checksum=told, actual_checksum=found)


def _read(data: bytes) -> dict[str, Any]:
    """What a success says; where it says nothing, it may have been a success all the same."""
    try:
        read = json.loads(data, object_hook=_decoded)
        if not isinstance(read, dict):
            raise ValueError("not an object")
    except UNREADABLE as error:
        raise HTTPClientError(error=error) from error
    # botocore leaves them out, and callers ask what is there.
    return {name: value for name, value in read.items() if value is not None}


def _encoded(value: bytes) -> str:
    return b64encode(value).decode()


def _decoded(value: dict[str, Any]) -> dict[str, Any]:
    """A typed value of bytes as bytes. An attribute that is named B is a typed value, no text."""
    if len(value) == 1:
        if isinstance(text := value.get("B"), str):
            return {"B": b64decode(text)}
        if isinstance(texts := value.get("BS"), list):
            return {"BS": [b64decode(text) for text in texts]}
    return value


#: What reading an answer of another form may raise; the last one is deep nesting.
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)


class AnswerParser(JSONParser):
    """Raises `HTTPClientError`, and nothing else, for what it cannot read."""

    def parse(self, response: Mapping[str, Any], shape: Any) -> dict[str, Any]:
        """As botocore's, but `Error.Code` and `Error.Message` and those of reasons are strings."""
        try:
            parsed = super().parse(response, shape)
            if not isinstance(parsed, dict):
                raise ValueError("not an object")
            _check_error(parsed.get("Error", {}))
            for reason in parsed.get("CancellationReasons") or ():
                _check_error(reason)
        except (*UNREADABLE, ResponseParserError) as error:
            raise HTTPClientError(error=error) from error
        return parsed

    def _handle_json_body(self, raw_body: bytes, shape: Any) -> Any:
        # botocore's reads text that is not JSON as an object without members of ours.
        return self._parse_shape(shape, json.loads(raw_body))  # type: ignore[attr-defined]  # absent from the stubs


class AnswerParserFactory(ResponseParserFactory):
    """For a botocore session: `AnswerParser` for DynamoDB, botocore's for all else."""

    def create_parser(self, protocol_name: str) -> Any:
        """The parser of answers in this protocol."""
        return AnswerParser() if protocol_name == "json" else super().create_parser(protocol_name)


def _check_error(told: Any) -> None:
    # The message may be absent or null, the code never.
    message = told.get("Message")
    told["Message"] = "" if message is None else message
    for name in ("Code", "Message"):
        if not isinstance(told.get(name, ""), str):
            raise ValueError(f"{name} is not a string")
