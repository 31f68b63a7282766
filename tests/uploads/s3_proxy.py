"""A proxy before S3 that fails as planned, and counts what S3 stored.

s3_proxy.plan("PutObject", DropReply())
s3_proxy.plan("UploadPart", Meanwhile(…), when=lambda request: request["partNumber"] == "2")
assert s3_proxy.stored[key] == 1
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from dynamo.client import credentials
from tests.faults.handler import Handler, RawReply, Seen
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from uploads import s3

_OPERATIONS = {
    ("DELETE", "uploadId"): "AbortMultipartUpload",
    ("GET", "attributes"): "GetObjectAttributes",
    ("GET", "list-type"): "ListObjectsV2",
    ("GET", "uploadId"): "ListParts",
    ("GET", "uploads"): "ListMultipartUploads",
    ("POST", "uploadId"): "CompleteMultipartUpload",
    ("POST", "uploads"): "CreateMultipartUpload",
    ("PUT", "partNumber"): "UploadPart",
}
_PLAIN = {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "PutObject", "DELETE": "DeleteObject"}
_STORING = {"CompleteMultipartUpload", "PutObject"}


@dataclass(frozen=True)
class S3Answer(Answer):
    """An error of S3, such as `S3Answer(503, "SlowDown")`."""

    def body(self) -> bytes:
        error = f"<Error><Code>{self.code}</Code><Message>{self.message}</Message></Error>"
        return f'<?xml version="1.0" encoding="UTF-8"?>{error}'.encode()


class S3Proxy(FaultProxy):
    """Recognizes operations by method and query. `seen` has the query and the key."""

    def __init__(self, engine_url: str) -> None:
        super().__init__(engine_url)
        #: How often S3 stored an object under each key.
        self.stored: Counter[str] = Counter()
        #: The keys of the requests with `Expect: 100-continue`.
        self.asked: list[str] = []
        # S3 answers a repeated Complete as it did the first one; it stores nothing again.
        self._completed: set[str] = set()
        self._counting = threading.Lock()

    def _handler(self) -> type[Handler]:
        return _S3Handler

    def forget(self) -> None:
        super().forget()
        self.stored.clear()
        self.asked.clear()

    def note(self, seen: Seen, reply: RawReply) -> None:
        # A Complete that fails may say so in the body of a 200.
        if seen.operation not in _STORING or reply.status != 200 or b"<Error>" in reply.body:
            return
        with self._counting:
            upload_id = seen.body.get("uploadId")
            if upload_id not in self._completed:
                self.stored[seen.body["key"]] += 1
            if upload_id is not None:
                self._completed.add(upload_id)


class _S3Handler(Handler):
    proxy: S3Proxy

    def _do(self) -> None:
        body = self.read_body()
        seen = _seen(self.command, self.path)
        headers = dict(self.headers.items())
        if headers.pop("Expect", None) is not None:
            self.proxy.asked.append(seen.body["key"])
        self._serve(seen, headers, body)

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = _do

    def _pass_on(self, reply: RawReply) -> None:
        if self.command != "HEAD":
            super()._pass_on(reply)
            return
        # The length is that of the object, which is not sent.
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            if name.lower() not in {"connection", "transfer-encoding"}:
                self.send_header(name, value)
        self.end_headers()


def _seen(method: str, target: str) -> Seen:
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    _root, _bucket, *key = parts.path.split("/", 2)
    known = (name for verb, name in _OPERATIONS if verb == method and name in query)
    operation = next((_OPERATIONS[method, name] for name in known), _PLAIN.get(method, method))
    return Seen(operation, query | {"key": unquote("".join(key))})


@contextmanager
def through(url: str) -> Iterator[None]:
    """Let this process, and those that it starts, talk to S3 at `url` for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_S3", url)
        s3.client.reset()
        credentials.of_process.reset()
        try:
            yield
        finally:
            s3.client.reset()
            credentials.of_process.reset()
