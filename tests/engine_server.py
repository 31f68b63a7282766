"""Serves the DynamoDB of ministack or moto directly, without the other services.

    python -P tests/engine_server.py ministack PORT

Their own programs serve a hundred services, and need most of their time to find the right one: four
fifths of ministack's, two thirds of moto's. Here each request goes to the handler of DynamoDB. One
request at a time, on its own connection: moto is not thread-safe, so tests of concurrent writes
would fail now and then.

It is a script that runs with -P, as modules in this folder have the names of modules of moto.
"""

import functools
import io
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

HOST = "127.0.0.1"

#: From lower-case headers and a body to the status, headers and body of the answer.
Answer = Callable[[dict[str, str], bytes], tuple[int | str, Mapping[str, str], str | bytes]]


def ministack() -> Answer:
    """The handler of ministack: a coroutine that never waits."""
    from ministack.core.responses import set_request_region
    from ministack.core.router import extract_region
    from ministack.services.dynamodb import handle_request

    def answer(
        headers: dict[str, str], body: bytes
    ) -> tuple[int | str, Mapping[str, str], str | bytes]:
        set_request_region(extract_region(headers))
        handling = handle_request("POST", "/", headers, body, {})
        try:
            handling.send(None)
        except StopIteration as end:
            return end.value
        raise RuntimeError("ministack's handler waits now, so it needs an event loop.")

    return answer


def moto() -> Answer:
    """The handler of moto, with the list of its methods cached."""
    import moto.core.responses
    from moto.core.request import Request
    from moto.dynamodb.responses import DynamoHandler

    listed = functools.cache(moto.core.responses.method_names_from_class)
    moto.core.responses.method_names_from_class = listed

    def answer(
        headers: dict[str, str], body: bytes
    ) -> tuple[int | str, Mapping[str, str], str | bytes]:
        environment = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/",
            "QUERY_STRING": "",
            "SERVER_NAME": HOST,
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
        }
        for name, value in headers.items():
            environment["HTTP_" + name.upper().replace("-", "_")] = value
        return DynamoHandler.dispatch(Request(environment))

    return answer


class Server(HTTPServer):
    """Serves `answer` until the process is ended."""

    request_queue_size = 1024

    def __init__(self, answer: Answer, port: int) -> None:
        self.answer = answer
        super().__init__((HOST, port), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        status, told, text = self.server.answer(headers, body)
        content = text.encode() if isinstance(text, str) else text
        self.send_response_only(int(status))
        for name, value in told.items():
            if name.lower() not in ("content-length", "status"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


if __name__ == "__main__":
    [_program, name, port] = sys.argv
    Server({"ministack": ministack, "moto": moto}[name](), int(port)).serve_forever()
