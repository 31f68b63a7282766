"""The start of the site, for the entry points of WSGI, ASGI and AWS Lambda."""

import gc
import os
import socket
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import django
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import translation

from project.checks import stop_without_static_files

#: A connection is closed if its client has received nothing of the sent data for this time.
READER_SECONDS = 30


def start() -> None:
    """Set up Django, or end with one line if the site cannot answer any page."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    # Before the middlewares exist, because one of them would warn about the missing folder.
    django.setup(set_prefix=False)
    stop_without_static_files()


def load_pages() -> None:
    """Load the code and the data of all pages, except PDFs, so that no page has to wait for it.

    This is for a process that answers many pages: that of a server before it forks and listens, and
    one before its snapshot is taken. If AWS Lambda starts a function for a waiting request, the
    function loads only what this request needs.
    """
    import phonenumbers  # noqa: F401 - only for its tables

    from invoices.document.places import country_choices, currency_choices

    for language, _name in settings.LANGUAGES:
        with translation.override(language):
            reverse("home")
            country_choices()
            currency_choices()
    # By default, the collector takes three percent of a page's CPU time, and finds little.
    gc.set_threshold(20_000)


def cut_off_slow_readers() -> None:
    """On Linux, let the system close connections whose clients do not receive anything.

    A client that does not receive anything occupies a thread of the server, and no option of the
    server limits this. Later connections inherit the limit of the listening socket, which exists
    when the first request arrives, and not before. Connections to DynamoDB get the limit as well,
    but time out earlier.
    """
    with suppress(AttributeError, OSError):  # other systems
        option = socket.TCP_USER_TIMEOUT
        for file in Path("/proc/self/fd").iterdir():
            # Some are not TCP sockets, and the descriptor of this list is closed.
            with suppress(OSError):
                if file.is_socket():
                    with closing(socket.socket(fileno=os.dup(int(file.name)))) as own:
                        own.setsockopt(socket.IPPROTO_TCP, option, READER_SECONDS * 1000)


class _Request(HttpRequest):
    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        """Read only the type.

        Django also reads the parameters and the query, in any charset that the client names. At
        this time, an error would have no page. `project.middleware.FormMiddleware` reads the
        parameters.
        """
        kind = meta.get("CONTENT_TYPE", "").partition(";")[0]
        self.content_type, self.content_params = kind.strip().lower(), {}


class _WsgiRequest(_Request, WSGIRequest):
    pass


class _AsgiRequest(_Request, ASGIRequest):
    pass


class WsgiApplication(WSGIHandler):
    request_class = _WsgiRequest
    _is_first = True

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> HttpResponseBase:
        if self._is_first:
            self._is_first = False
            cut_off_slow_readers()
        return super().__call__(environ, start_response)


class AsgiApplication(ASGIHandler):
    request_class = _AsgiRequest
