"""Cookies that go where the session cookie goes, with the same flags."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http.response import HttpResponseBase


def set_cookie(response: HttpResponseBase, name: str, value: str, seconds: int | None) -> None:
    """Give the browser a cookie for so long; None: until it is closed. 0 deletes it."""
    options: dict[str, Any] = {
        option: getattr(settings, f"SESSION_COOKIE_{option.upper()}")
        for option in ("path", "domain", "secure", "httponly", "samesite")
    }
    response.set_cookie(name, value, max_age=seconds, **options)
