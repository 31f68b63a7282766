"""The environment, read strictly: what is missing or malformed is said by name, all at once.

django-environ reads `.env` and parses; it takes `maybe` for false and an empty key for a key. A
site must not start on such a guess.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from email.utils import parseaddr
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import environ
from botocore.utils import is_valid_uri
from django.core.exceptions import ValidationError
from django.core.mail.message import sanitize_address
from django.core.validators import validate_email

T = TypeVar("T")

_TRUE = {"1", "on", "true", "yes"}
_FALSE = {"", "0", "off", "false", "no"}
_LIMIT = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,3})([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}


class Environment:
    """Reads variables and collects what is wrong with them; `stop_if_wrong` says it and ends."""

    def __init__(self) -> None:
        self._wrong: list[str] = []

    def flag(self, name: str, *, default: bool = False) -> bool:
        """on, true, yes, 1 — or off, false, no, 0."""
        text = _raw(name, "on" if default else "off").lower()
        if text not in _TRUE | _FALSE:
            self.complain(name, "is neither on nor off")
        return text in _TRUE

    def text(
        self, name: str, *, default: str = "", check: Callable[[str], str] | None = None
    ) -> str:
        """A string; `check` says what is wrong with it, or nothing."""
        value = _raw(name, default)
        if value and check and (wrong := check(value)):
            self.complain(name, wrong)
        return value

    def required(
        self, name: str, *, needed: bool, check: Callable[[str], str] | None = None
    ) -> str:
        """A string that must be there where it is `needed`."""
        value = self.text(name, check=check)
        if needed and not value:
            self.complain(name, "is not set")
        return value

    def names(
        self, name: str, *, default: str = "", check: Callable[[str], str] | None = None
    ) -> list[str]:
        """A comma-separated list."""
        values = [value.strip() for value in _raw(name, default).split(",") if value.strip()]
        for value in values:
            if check and (wrong := check(value)):
                self.complain(name, wrong)
        return values

    def number(self, name: str, *, default: int, least: int = 1) -> int:
        """A whole number, positive unless `least` is 0."""
        text = _raw(name, str(default))
        if not (re.fullmatch("[0-9]{1,9}", text) and int(text) >= least):
            self.complain(name, f"is not a {'positive ' if least else ''}whole number")
            return default
        return int(text)

    def limit(self, name: str, *, default: str) -> tuple[int, int] | None:
        """How often in how many seconds (`10/15m`; s, m, h, d); None for off."""
        text = _raw(name, default).lower()
        if text == "off":
            return None
        if not (limit := _LIMIT.fullmatch(text)):
            self.complain(name, "is neither off nor a limit such as 10/15m")
            return None
        times, count, unit = limit.groups()
        return int(times), int(count) * _UNIT_SECONDS[unit]

    def email(self, name: str, *, default: str) -> dict[str, Any]:
        """The settings that a mail URL stands for (`smtp+tls://user:password@host:587`)."""
        try:
            return dict(environ.Env.email_url_config(_raw(name, default)))
        except (KeyError, ValueError, environ.ImproperlyConfigured):
            self.complain(name, "is no mail URL such as smtp+tls://user:password@host:587")
            return {}

    def complain(self, name: str, wrong: str) -> None:
        """Note what is wrong with a variable."""
        self._wrong.append(f"{name} {wrong}")

    def stop_if_wrong(self) -> None:
        """End the start with one line where anything was wrong.

        SystemExit, not an exception of Django's: `manage.py`, WSGI servers and scripts all show
        it as that one line.
        """
        if self._wrong:
            raise SystemExit(f"The site cannot start: {'; '.join(self._wrong)}.")


def _raw(name: str, default: str) -> str:
    # Not through environ.Env, which takes a leading $ for the name of another variable: one in
    # fifty of the keys that Django draws begins with it.
    return os.environ.get(name, default).strip()


def read_file(path: Path) -> None:
    """Let the `.env` at `path` fill in what the environment does not say; ends the start if it
    cannot be read."""
    try:
        environ.Env.read_env(path)
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"The site cannot start: {path.name} cannot be read: {error}.") from error


def is_host(value: str) -> str:
    """What is wrong with an allowed host such as www.example.com, .example.com, [::1] or *."""
    whole = re.fullmatch(r"\*|\.?[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*|\[[0-9a-fA-F:.]+\]", value)
    return "" if whole else f"has no host name in {value!r}: give it without scheme, port and path"


def is_origin(value: str) -> str:
    """What is wrong with a CSRF origin such as https://www.example.com."""
    try:
        parts = urlsplit(value)
        port = "" if parts.port is None else f":{parts.port}"
        # A browser names its host in ASCII, and never who asks.
        host = parts.netloc.removesuffix(port).removeprefix("*")
        whole = parts.scheme in {"http", "https"} and value == f"{parts.scheme}://{parts.netloc}"
        whole = whole and not is_host(host)
    except ValueError:
        whole = False
    return "" if whole else f"has no origin such as https://www.example.com in {value!r}"


def is_address(value: str) -> str:
    """What is wrong with the address that mails come from, which may have a name before it."""
    try:
        validate_email(parseaddr(value)[1])
        # As each mail will; one that cannot be sent is only logged.
        sanitize_address(value, "utf-8")
    except (ValidationError, ValueError):
        return f"is no e-mail address: {value!r}"
    return ""


def is_region(value: str) -> str:
    """What is wrong with a region's name; which there are, AWS knows."""
    # As botocore has it, which would refuse each request; no region has capitals.
    whole = re.fullmatch(r"(?!-)(?![0-9]+$)[a-z0-9-]{1,63}(?<!-)", value)
    return "" if whole else f"is no region such as eu-west-1: {value!r}"


def is_time_zone(value: str) -> str:
    """What is wrong with a time zone's name; which there are, the machine's zone files know."""
    try:
        ZoneInfo(value)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return f"is no time zone such as Europe/London: {value!r}"
    return ""


def is_url(value: str) -> str:
    """What is wrong with an endpoint's URL."""
    try:
        parts = urlsplit(value)
        whole = parts.scheme in {"http", "https"} and parts.port != 0
        # As botocore will, which else refuses each request.
        whole = whole and is_valid_uri(value)
    except ValueError:
        whole = False
    return "" if whole else f"is no http or https URL: {value!r}"
