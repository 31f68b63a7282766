"""One HTTP/1.1 exchange on a connection, without the parser that http.client borrows from email.

http.client sends a request header by header and reads an answer's headers as those of a mail, with
charsets and line folding. That was a fifth of a client's CPU time for a request
(`python -m benchmarks.client`).

Source of the format: RFC 9112, https://www.rfc-editor.org/rfc/rfc9112
"""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from typing import Any, BinaryIO, NamedTuple

#: http.client's bounds, in bytes and in headers.
_MAX_LINE = 65536
_MAX_HEADERS = 100


class HttpAnswer(NamedTuple):
    """What the endpoint answered, read to its end. Names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    data: bytes


def exchange(connection: Any, target: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
    """POST `body` on the open `connection`, and close it if its server will.

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
    with connection.sock.makefile("rb") as reader:
        answer, stays_open = _answer(reader)
    if not stays_open:
        connection.close()
    return answer


def _answer(reader: BinaryIO) -> tuple[HttpAnswer, bool]:
    """The answer, and whether the connection can be used again."""
    status = 100
    while status < 200:  # an interim response, such as 100 Continue, has only headers
        version, status = _status(reader)
        headers = _headers(reader)
    if status in (204, 304):
        data = b""
    elif "chunked" in headers.get("transfer-encoding", "").lower():
        data = b"".join(iter(lambda: _chunk(reader), b""))
        _headers(reader)  # trailers
    elif (length := headers.get("content-length")) is not None:
        data = _exactly(reader, int(length))
    else:
        return HttpAnswer(status, headers, reader.read()), False
    stays_open = version == b"HTTP/1.1" and headers.get("connection", "").lower() != "close"
    return HttpAnswer(status, headers, data), stays_open


def _status(reader: BinaryIO) -> tuple[bytes, int]:
    line = _line(reader)
    if not line:
        raise RemoteDisconnected("The connection was closed without an answer.")
    version, _, rest = line.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise HTTPException(f"This is not a status line: {line!r}")
    return version, int(rest[:3])


def _headers(reader: BinaryIO) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(_MAX_HEADERS + 1):
        line = _line(reader)
        if line in (b"\r\n", b"\n", b""):
            return headers
        name, _colon, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    raise HTTPException("The answer has too many headers.")


def _chunk(reader: BinaryIO) -> bytes:
    """The next chunk; the last one is empty."""
    size = int(_line(reader).partition(b";")[0], 16)
    data = _exactly(reader, size)
    if size:
        _line(reader)
    return data


def _line(reader: BinaryIO) -> bytes:
    line = reader.readline(_MAX_LINE + 1)
    if len(line) > _MAX_LINE:
        raise HTTPException("A line of the answer is too long.")
    return line


def _exactly(reader: BinaryIO, size: int) -> bytes:
    data = reader.read(size)
    if len(data) < size:
        raise IncompleteRead(data, size - len(data))
    return data
