"""The pages of errors. Django's own read the form, and fail if the form is the error."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string


def _page(status: int) -> Callable[..., HttpResponse]:
    def show(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
        return HttpResponse(render_to_string(f"{status}.html"), status=status)

    return show


bad_request, forbidden, not_found, server_error = map(_page, (400, 403, 404, 500))
