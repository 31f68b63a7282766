"""Serves the DynamoDB of ministack or moto directly, without the other services.

    python -P tests/engine_server.py ministack PORT

Their own programs serve a hundred services, and need most of their time to find the right one: four
fifths of ministack's, two thirds of moto's. Here each request goes to the handler of DynamoDB. One
request at a time: moto is not thread-safe, so tests of concurrent writes would fail now and then.

It is a script that runs with -P, as modules in this folder have the names of modules of moto.
"""

import asyncio
import functools
import io
import sys
from collections.abc import Callable, Mapping

HOST = "127.0.0.1"
#: More than the largest headers of a request.
HEAD_BYTES = 1 << 20
WAITING = 1024

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


async def serve(answer: Answer, port: int) -> None:
    """Serve until the process is ended."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                headers = _headers(await reader.readuntil(b"\r\n\r\n"))
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                writer.write(_reply(*answer(headers, body)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # The client has closed the connection.
        finally:
            writer.close()

    server = await asyncio.start_server(talk, HOST, port, limit=HEAD_BYTES, backlog=WAITING)
    async with server:
        await server.serve_forever()


def _headers(head: bytes) -> dict[str, str]:
    headers = {}
    for line in head.decode("latin-1").split("\r\n")[1:-2]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return headers


def _reply(status: int | str, headers: Mapping[str, str], body: str | bytes) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} ", f"Content-Length: {len(content)}"]
    lines += [
        f"{name}: {value}"
        for name, value in headers.items()
        if name.lower() not in ("content-length", "status")
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


if __name__ == "__main__":
    [_program, name, port] = sys.argv
    asyncio.run(serve({"ministack": ministack, "moto": moto}[name](), int(port)))
