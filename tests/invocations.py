"""A small stand-in for AWS Lambda's Invoke API.

    with Invocations() as api:
        …
    api.events      what was sent, in order

Source: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Invocations(ThreadingHTTPServer):
    """Takes asynchronous invocations of the function `exports`; tests run the events themselves."""

    daemon_threads = True
    function = "exports"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.events: list[dict[str, Any]] = []
        #: Whether the API refuses.
        self.is_down = False
        #: Cleared, the API takes events and does not answer.
        self.answers = threading.Event()
        self.answers.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.answers.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Invocations
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        wanted = f"/2015-03-31/functions/{self.server.function}/invocations"
        is_event = self.headers["X-Amz-Invocation-Type"] == "Event"
        is_taken = self.path == wanted and is_event and not self.server.is_down
        if is_taken:
            self.server.events.append(json.loads(body))
        self.server.answers.wait()
        self.send_response(202 if is_taken else 403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_said: Any) -> None:
        pass
