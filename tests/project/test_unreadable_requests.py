"""Requests that Django cannot read get the page 400, from the application that servers run."""

import logging
from contextlib import closing
from io import BytesIO
from typing import Any

import pytest
from django.conf import settings as site

from project.start import WsgiApplication

pytestmark = pytest.mark.usefixtures("engine")

FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=X"
PART = 'Content-Disposition: form-data; name="a"'
MANY = "&".join(f"field{number}=" for number in range(site.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1))
LARGE = "a=" + "b" * 2 * site.DATA_UPLOAD_MAX_MEMORY_SIZE


def parts(*heads: str) -> str:
    return "".join(f"--X\r\n{head}\r\n\r\nvalue\r\n" for head in heads) + "--X--\r\n"


def ask(kind: str, body: str = "", query: str = "") -> Any:
    """The status, headers and page of a form with a CSRF cookie, as a server would ask for it."""
    answer: list[Any] = []
    environ = {
        "REQUEST_METHOD": "POST" if body else "GET",
        "PATH_INFO": "/accounts/login/",
        "QUERY_STRING": query,
        "CONTENT_TYPE": kind,
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_HOST": "testserver",
        "HTTP_COOKIE": f"{site.CSRF_COOKIE_NAME}={'a' * 32}",
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "wsgi.input": (sent := BytesIO(body.encode())),
    }
    with closing(WsgiApplication()(environ, lambda *head: answer.extend(head))) as sent_back:
        page = b"".join(sent_back).decode()
    if len(body) > site.DATA_UPLOAD_MAX_MEMORY_SIZE:
        # A browser shows no answer before it has sent its form.
        assert not sent.read(1)
    return int(answer[0].split()[0]), dict(answer[1]), page


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *(
            (f"{FORM}; charset{text}", "a=b")
            for text in ("=latin1", "=rot13", "=no-such", "*=rot13''rot%41", "*=a; charset*0=b")
        ),
        (FORM, MANY),
        (FORM, LARGE),
        (PARTS, parts(PART).replace("value", LARGE)),
        (f"{PARTS}; charset=rot13", parts(PART)),
        (f"{PARTS}; charset=idna", parts(PART)),
        (f"{PARTS}; other*=a; other*0=b", parts(PART)),
        (PARTS, parts(f"{PART}; other*=a; other*0=b")),
        (PARTS, parts(f'{PART}; filename="a"')),
        ("multipart/form-data", parts(PART)),
    ],
    ids=lambda value: repr(value)[-24:],
)
def test_a_form_that_cannot_be_read_is_a_bad_request(
    caplog: pytest.LogCaptureFixture, kind: str, body: str
) -> None:
    status, headers, page = ask(kind, body)

    assert (status, "Bad request" in page) == (400, True)
    told = "could not understand"
    if body == MANY:
        told = "This form has more than 1,550 fields."
    elif LARGE in body:
        told = "This form has more than 3.5\xa0MB of text."
    assert told in page
    assert site.ANSWER_HEADERS.items() <= headers.items()
    [line] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (line.name, line.levelname, line.exc_info) == ("project.middleware", "WARNING", None)


@pytest.mark.parametrize(
    ("charset", "query"), [("rot13", ""), ("idna", ""), ("utf-16", ""), ("utf-8", MANY)]
)
def test_a_query_that_cannot_be_read_is_a_bad_request(charset: str, query: str) -> None:
    assert ask(f"text/plain; charset={charset}", query=query or "next=%E3%81%82")[0] == 400


@pytest.mark.parametrize("kind", [FORM, f"{FORM}; charset=UTF-8", f"{FORM};charset=utf8"])
def test_a_form_in_utf_8_is_read(kind: str) -> None:
    status, _headers, _page = ask(kind, f"csrfmiddlewaretoken={'a' * 32}&username=%E3%81%82")

    assert status == 200
