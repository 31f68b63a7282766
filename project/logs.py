"""Writes log lines, plain or JSON, without secrets at any level (see `project.hiding`).

This covers the handlers of `LOGGING`, whatever the levels of the loggers are. A server's own access
log (granian's, a proxy's) is not among them: it writes paths as they came.

All lines that a page wrote have its HTTP request id: see `project.middleware.RequestIdMiddleware`.
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

#: Below WARNING these log whole requests, answers or template contexts. Those contain password
#: hashes, session keys and tokens in too many forms to be found.
TALKATIVE = ("boto3", "botocore", "django.template", "pynamodb", "s3transfer", "urllib3")

#: The names of a JSON line, in their order. Other attributes of a record are left out: some are
#: whole requests and answers. See `docs/operators.md`.
FIELDS = (
    *("time", "level", "logger", "message", "requestId"),
    # Of the line of a page, by `project.access`.
    *("method", "path", "url", "status", "account", "client"),
    # Of the line of a command, by `dynamo.management.base`.
    "command",
    # Of both.
    *("milliseconds", "dynamodbRequests", "readUnits", "writeUnits"),
    *("retries", "conflicts", "joined"),
    # Of a line about an error.
    *("exception", "stack"),
)

# The site itself makes the others: there is nothing to hide, and searching takes time.
_MAY_HOLD_SECRETS = {"message", "method", "path", "exception", "stack"}

log = logging.getLogger(__name__)


def capture_python_messages() -> None:
    """Log what Python itself would write to stderr: warnings, and errors that end threads."""
    logging.captureWarnings(True)
    threading.excepthook = _logging_before(threading.excepthook)


def _logging_before(
    hook: Callable[[threading.ExceptHookArgs], object],
) -> Callable[[threading.ExceptHookArgs], None]:
    def log_end(end: threading.ExceptHookArgs) -> None:
        if end.exc_value is not None and not issubclass(end.exc_type, SystemExit):
            name = end.thread.name if end.thread else "without a name"
            exc_info = (end.exc_type, end.exc_value, end.exc_traceback)
            log.error("The thread %s ended with an error", name, exc_info=exc_info)
        if hook is not threading.__excepthook__:
            hook(end)

    return log_end


class TalkativeFilter(logging.Filter):
    """Drops the lines of `TALKATIVE` loggers below WARNING."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not any(
            f"{record.name}.".startswith(f"{name}.") for name in TALKATIVE
        )


class HidingFormatter(logging.Formatter):
    """Writes lines and their tracebacks without secrets, with the HTTP request id at their end."""

    def format(self, record: logging.LogRecord) -> str:
        return hide(super().format(record), getattr(record, "request", None))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of the base class
        """The line without its traceback."""
        line = super().formatMessage(record)
        return f"{line} [{request_id}]" if (request_id := guid.get()) else line


class HidingJsonFormatter(JsonFormatter):
    """Writes each line as one JSON object of `FIELDS`, without secrets.

    They are hidden before the values become JSON, which escapes some of their characters.
    """

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        found = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            # The message is empty if a dict was logged instead of a text.
            "message": record.message or str(record.msg),
            "requestId": guid.get(),
            "exception": message_dict.get("exc_info"),
            "stack": message_dict.get("stack_info"),
        } | getattr(record, "fields", {})
        hidden = hiding(getattr(record, "request", None))
        for name in FIELDS:
            value = found.get(name)
            if name in _MAY_HOLD_SECRETS and value is not None:
                value = hidden(str(value))
            if value is not None:
                log_data[name] = value
