"""How log lines are written, so that none holds a secret at any level (see `project.hiding`).

It holds on the handlers of `LOGGING`, whatever the levels of the loggers are set to. A server's
own access log (granian's, a proxy's) writes paths as they came: it is no handler of ours.

Lines are plain or JSON. All lines that a page wrote have its HTTP request id: see
`project.middleware.RequestIdMiddleware`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django_guid.context import guid
from pythonjsonlogger.json import JsonFormatter

from project.hiding import hide, hiding

#: Below WARNING these print whole requests, answers or contexts of templates: password hashes,
#: session keys and tokens among them, in too many forms to be looked for.
TALKATIVE = ("boto3", "botocore", "django.template", "pynamodb", "s3transfer", "urllib3")

#: The names of a JSON line, in their order; of what a record has besides nothing is written, as
#: whole requests and answers hang on some. See `docs/operators.md`.
FIELDS = (
    "time",
    "level",
    "logger",
    "message",
    "requestId",
    # Of the one line of a page, by `project.access`.
    "method",
    "path",
    "url",
    "status",
    "account",
    "client",
    # Of the one line of a command, by `dynamo.management.base`.
    "command",
    # Of both.
    "milliseconds",
    "dynamodbRequests",
    "readUnits",
    "writeUnits",
    "retries",
    "conflicts",
    "joined",
    # Of a line about an error.
    "exception",
    "stack",
)

# What the others say is made by the site: there is nothing to hide, and to look takes its time.
_MAY_HOLD_SECRETS = {"message", "method", "path", "exception", "stack"}

#: Under this name a record brings fields of its own: `extra={"fields": {…}}`.
OF_RECORD = "fields"

log = logging.getLogger(__name__)


def take_in_what_python_writes() -> None:
    """Make lines of what else would go to stderr past all handlers: warnings, threads' errors."""
    logging.captureWarnings(True)
    threading.excepthook = _logging_before(threading.excepthook)


def _logging_before(
    hook: Callable[[threading.ExceptHookArgs], object],
) -> Callable[[threading.ExceptHookArgs], None]:
    def log_end(end: threading.ExceptHookArgs) -> None:
        if end.exc_value is not None and not issubclass(end.exc_type, SystemExit):
            name = end.thread.name if end.thread else "of no name"
            exc_info = (end.exc_type, end.exc_value, end.exc_traceback)
            log.error("The thread %s ended by an error", name, exc_info=exc_info)
        if hook is not threading.__excepthook__:
            hook(end)

    return log_end


class TalkativeFilter(logging.Filter):
    """Drops what `TALKATIVE` loggers say below WARNING."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        return record.levelno >= logging.WARNING or not any(
            f"{record.name}.".startswith(f"{name}.") for name in TALKATIVE
        )


class HidingFormatter(logging.Formatter):
    """Writes lines and their tracebacks without secrets, with the HTTP request id at their end."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return hide(super().format(record), getattr(record, "request", None))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of the base class
        """The line but for its traceback."""
        line = super().formatMessage(record)
        return f"{line} [{request_id}]" if (request_id := guid.get()) else line


class HidingJsonFormatter(JsonFormatter):
    """Writes each line as one JSON object, with no field but `FIELDS`, and without secrets.

    They are hidden before the values become JSON, which spells some of them in another way.
    """

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        """Fill in the fields that the record has."""
        found = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            # A dict in the place of a text is no message of ours.
            "message": record.message or str(record.msg),
            "requestId": guid.get(),
            "exception": message_dict.get("exc_info"),
            "stack": message_dict.get("stack_info"),
        } | getattr(record, OF_RECORD, {})
        hidden = hiding(getattr(record, "request", None))
        for name in FIELDS:
            value = found.get(name)
            if name in _MAY_HOLD_SECRETS and value is not None:
                value = hidden(str(value))
            if value is not None:
                log_data[name] = value
