"""A browser: it keeps cookies, fills in forms, and follows no redirects."""

import http.client
from http.cookies import SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpResponse

from tests.pages import Page

#: A page answers within 5.5 seconds, but later if its server is frozen meanwhile.
PATIENCE_SECONDS = 15.0
#: How long a server may go on with a request whose client has given up.
LINGERS_SECONDS = 30.0


class NoAnswer(Exception):
    """The server is down, broke the connection, was too slow, or answered 503."""


class PageFailed(Exception):
    """The server answered with an unexpected status."""


class Answer(NamedTuple):
    status: int
    location: str
    page: Page


class Browser:
    """A browser of the server on a port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._cookies: dict[str, str] = {}

    def get(self, path: str) -> Answer:
        """Get a page. Raises NoAnswer, PageFailed."""
        return self._ask("GET", path)

    def send(self, path: str, form: Page, **typed: Any) -> Answer:
        """Send the form of `path` with what was typed. Raises NoAnswer, PageFailed."""
        drawn = {name: form.value(name) for name in form.fields}
        type_of_forms = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", path, urlencode(drawn | typed), type_of_forms)

    def _ask(self, method: str, path: str, body: str = "", headers: Any = ()) -> Answer:
        cookies = "; ".join(f"{name}={text}" for name, text in self._cookies.items())
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, {"Cookie": cookies, **dict(headers)})
            with connection.getresponse() as reply:
                text = reply.read()
                # The server sends the status, the headers and the body one after another. If it is
                # killed in between, `http.client` takes what came for an empty page.
                if "Content-Length" not in reply.headers:
                    raise http.client.IncompleteRead(text)
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(type(error).__name__) from error
        finally:
            connection.close()
        if reply.status == 503:
            raise NoAnswer("503")
        if reply.status not in {200, 302}:
            raise PageFailed(f"{method} {path}: {reply.status}")
        for cookie in reply.headers.get_all("Set-Cookie", []):
            for name, morsel in SimpleCookie(cookie).items():
                self._cookies[name] = morsel.value
        return Answer(reply.status, reply.headers.get("Location", ""), Page(HttpResponse(text)))
