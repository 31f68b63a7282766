"""Reads the environment strictly: all missing or malformed variables are reported by name.

django-environ reads `.env` and mail URLs. Its other parsers are not used: they read `maybe` as
false, and a leading $ as a reference to another variable (one in fifty of Django's keys has one).
"""

import os
import re
from collections.abc import Callable
from email.utils import parseaddr
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import environ
from botocore.utils import is_valid_uri
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.mail.message import sanitize_address
from django.core.validators import validate_email

T = TypeVar("T")

_NAME = r"\.?[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*|\[[0-9a-fA-F:.]+\]"
_HOST = re.compile(rf"\*|{_NAME}")
_ORIGIN = re.compile(rf"https?://\*?({_NAME})(:[0-9]+)?")


class Environment:
    """Reads variables and collects the problems with them."""

    def __init__(self, file: Path) -> None:
        """`file` has the variables that the environment does not have."""
        self._problems: dict[str, str] = {}
        try:
            environ.Env.read_env(file)
        except (OSError, UnicodeDecodeError) as error:
            # Otherwise, every variable of the file would be reported as missing.
            raise SystemExit(
                f"The site cannot start: {file.name} cannot be read: {error}."
            ) from error

    def read(self, name: str, parse: Callable[[str], T], default: str = "") -> T:
        """The parsed variable. If `parse` raises ValueError, its text is the problem."""
        try:
            return parse(os.environ.get(name, default).strip())
        except ValueError as error:
            self.check(False, name, str(error))
            return parse(default)

    def check(self, is_met: bool, name: str, problem: str) -> None:
        """Unless `is_met`, note a problem with the variable. Only the first problem is reported."""
        if not is_met:
            self._problems.setdefault(name, problem)

    def is_wrong(self, *names: str) -> bool:
        """Whether a problem of one of the variables is noted."""
        return not self._problems.keys().isdisjoint(names)

    def stop_if_wrong(self) -> None:
        """End the start with one line that names every problem.

        SystemExit is raised, because `manage.py`, WSGI servers and scripts show it as one line.
        """
        if self._problems:
            problems = "; ".join(f"{name} {problem}" for name, problem in self._problems.items())
            raise SystemExit(f"The site cannot start: {problems}.")


def text(
    expected: str, is_valid: Callable[[str], object], *, secret: bool = False
) -> Callable[[str], str]:
    """A parser of a text that may be empty. The problem shows the text unless it is `secret`."""

    def parse(value: str) -> str:
        if value and not _passes(is_valid, value):
            raise ValueError(f"must be {expected}" + ("" if secret else f", not {value!r}"))
        return value

    return parse


def list_of(
    expected: str = "", is_valid: Callable[[str], object] = bool
) -> Callable[[str], list[str]]:
    """A parser of a comma-separated list. The problem shows each part that is not valid."""

    def parse(value: str) -> list[str]:
        parts = [part.strip() for part in value.split(",") if part.strip()]
        wrong = [part for part in parts if not _passes(is_valid, part)]
        if wrong:
            raise ValueError(f"contains {', '.join(map(repr, wrong))}: use {expected}")
        return parts

    return parse


def _passes(is_valid: Callable[[str], object], value: str) -> bool:
    try:
        return bool(is_valid(value))
    except (LookupError, OSError, ValueError, ValidationError):
        return False


def one_of(*choices: str) -> Callable[[str], str]:
    return text(" or ".join(choices), choices.__contains__)


def whole_number(least: int = 1) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not (re.fullmatch("[0-9]{1,9}", value) and int(value) >= least):
            raise ValueError(f"must be a whole number, {least} or more")
        return int(value)

    return parse


def flag(value: str) -> bool:
    if value.lower() in {"1", "on", "true", "yes"}:
        return True
    if value.lower() in {"", "0", "off", "false", "no"}:
        return False
    raise ValueError("must be on or off")


def email_settings(value: str) -> dict[str, Any]:
    """The settings that a mail URL represents (`smtp+tls://user:password@host:587`)."""
    try:
        return dict(environ.Env.email_url_config(value))
    except (KeyError, ValueError, ImproperlyConfigured) as error:
        wanted = "smtp+tls://user:password@host:587"
        raise ValueError(f"must be a mail URL such as {wanted}") from error


def is_origin(value: str) -> bool:
    """Whether `value` is an origin such as https://www.example.com or https://*.example.com."""
    # A port that is too large is a ValueError.
    return bool(_ORIGIN.fullmatch(value)) and urlsplit(value).port != 0


def _is_sender(value: str) -> bool:
    validate_email(parseaddr(value)[1])
    # Django calls this for every mail as well, but an error there would only be logged.
    sanitize_address(value, "utf-8")
    return True


def _is_endpoint(value: str) -> bool:
    parts = urlsplit(value)
    # botocore refuses each request to a URL that it considers invalid.
    return parts.scheme in {"http", "https"} and parts.port != 0 and is_valid_uri(value)


def has_phone_numbers(region: str) -> bool:
    # Imported here, because the setting is empty by default.
    from phonenumbers import SUPPORTED_REGIONS

    return region in SUPPORTED_REGIONS


hosts = list_of("host names only, without scheme, port or path", _HOST.fullmatch)
origins = list_of("origins such as https://www.example.com", is_origin)
sender = text("an email address", _is_sender)
endpoint = text("an http or https URL", _is_endpoint)
# The same rule as botocore's, without capital letters, which no region has.
region = text(
    "a region such as eu-west-1", re.compile(r"(?!-)(?![0-9]+$)[a-z0-9-]{1,63}(?<!-)").fullmatch
)
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
bucket = text("the name of a bucket", re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]").fullmatch)
# The name of a parameter, or its ARN if it belongs to another account.
parameter_name = text(
    "the name of an SSM parameter", re.compile(r"[a-zA-Z0-9_.:/-]{1,2048}").fullmatch
)
# `available_timezones` is not used, because it reads every time zone file and leaves some out.
time_zone = text("a time zone such as Europe/London", ZoneInfo)
table_prefix = text("a prefix of table names", re.compile(r"[a-zA-Z0-9_.-]{0,200}").fullmatch)
# The characters of RFC 6750, section 2.1.
bearer_token = text(
    "a token of 32 or more letters, digits and - . _ ~ + /",
    re.compile(r"[A-Za-z0-9._~+/-]{32,}=*").fullmatch,
    secret=True,
)
folder = text(
    "a folder that can be written to",
    lambda value: Path(value).is_dir() and os.access(value, os.W_OK),
)
