"""What the entry points of WSGI, ASGI and AWS Lambda do before the site answers, and how."""

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

#: A connection is closed when its client has taken nothing of what was sent to it for this time.
READER_SECONDS = 30


def start() -> None:
    """Set up Django, or end with one line if the site cannot answer any page."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    # Before the middlewares exist, because one of them would warn about the missing folder.
    django.setup(set_prefix=False)
    stop_without_static_files()


def load_pages() -> None:
    """Load the code and the data of all pages, except PDFs, so that none has to wait for it.

    For a process that answers many pages: a server's, before it forks and listens, and one whose
    snapshot is taken. A function that AWS Lambda starts because a request is waiting loads only
    what that request needs.
    """
    import phonenumbers  # noqa: F401 - only for its tables

    from invoices.document.places import country_choices, currency_choices

    for language, _name in settings.LANGUAGES:
        with translation.override(language):
            reverse("home")
            country_choices()
            currency_choices()
    # By default the collector takes three percent of a page's CPU, and finds little.
    gc.set_threshold(20_000)


def cut_off_slow_readers() -> None:
    """Let the system close connections to this server whose clients take nothing, on Linux.

    A reader that takes nothing holds a thread of the server, and none of its options limits that.
    Later connections inherit the limit of the socket that listens, which exists when the first
    request comes, and not before. Connections to DynamoDB get it, too, and give up earlier.
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

        Django reads the parameters and the query, too, in any charset that the client names. An
        error would have no page yet. `project.middleware.FormMiddleware` reads the parameters.
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
