"""The browser of the clients: a reply that was cut is not an answer."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.torture.clients.browser import Browser, NoAnswer

REPLY = (
    b"HTTP/1.0 200 OK\r\n",
    b"Date: Mon, 23 Nov 2026 08:14:46 GMT\r\n",
    b"Server: WSGIServer/0.2\r\n",
    b"Content-Type: text/html\r\nContent-Length: 13\r\n\r\n",
    b"<p>Hello.</p>",
)


@pytest.mark.parametrize("count", range(len(REPLY) + 1))
def test_only_a_whole_reply_is_an_answer(count: int) -> None:
    """A server may be killed after each part of its reply."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as thread:

        def serve() -> None:
            connection, _address = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"".join(REPLY[:count]))

        thread.submit(serve)
        browser = Browser(listening.getsockname()[1])
        if count < len(REPLY):
            with pytest.raises(NoAnswer):
                browser.get("/")
        else:
            answer = browser.get("/")
            assert (answer.status, answer.page.text) == (200, "Hello.")
