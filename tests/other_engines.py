"""Engines that lack or refuse something, for tests of what we make of that."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@contextmanager
def refusing(
    url: str,
    operations: Collection[str],
    code: str,
    *,
    times: int | None = None,
    carried_out: bool = False,
) -> Iterator[str]:
    """A proxy before the engine at `url` that answers `operations` with the error `code`.

    It does so `times` times (None: always); `carried_out` forwards the request all the same.
    """
    target = urlsplit(url).netloc
    left = itertools.count() if times is None else iter(range(times))

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            refused = operation in operations and next(left, None) is not None
            status, answer = 400, json.dumps({"__type": code, "message": "as the test wants it"})
            if carried_out or not refused:
                connection = http.client.HTTPConnection(target)
                connection.request("POST", "/", body, dict(self.headers))
                response = connection.getresponse()
                forwarded = response.status, response.read().decode()
                connection.close()
                if not refused:
                    status, answer = forwarded
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(answer.encode())))
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_args: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
