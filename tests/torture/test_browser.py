"""The browser of the clients: a reply that was cut is not an answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.torture.clients.browser import Browser, NoAnswer

REPLY = (
    b"HTTP/1.0 200 OK\r\n",
    b"Date: Mon, 23 Nov 2026 08:14:46 GMT\r\n",
    b"Server: WSGIServer/0.2\r\n",
    b"Content-Type: text/html\r\nContent-Length: 13\r\n\r\n",
    b"<p>Hello.</p>",
)


@pytest.fixture
def server() -> Iterator[Callable[[bytes], int]]:
    """Start a server that sends some bytes and ends; returns its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def send(reply: bytes) -> int:
            def serve() -> None:
                connection, _address = listening.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(reply)

            threads.append(threading.Thread(target=serve))
            threads[-1].start()
            port: int = listening.getsockname()[1]
            return port

        threads: list[threading.Thread] = []
        yield send
        for thread in threads:
            thread.join()


def test_a_whole_reply_is_an_answer(server: Callable[[bytes], int]) -> None:
    answer = Browser(server(b"".join(REPLY))).get("/")

    assert (answer.status, answer.page.text) == (200, "Hello.")


@pytest.mark.parametrize("count", range(len(REPLY)))
def test_a_reply_of_a_server_that_was_killed_meanwhile_is_not_an_answer(
    server: Callable[[bytes], int], count: int
) -> None:
    browser = Browser(server(b"".join(REPLY[:count])))

    with pytest.raises(NoAnswer):
        browser.get("/")
