"""The applications for WSGI and ASGI: Django's, whose requests can always be made."""

from __future__ import annotations

from typing import Any

from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpRequest


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


class AsgiApplication(ASGIHandler):
    request_class = _AsgiRequest
