"""How log lines are written, so that none holds a secret at any level (see `project.hiding`).

It holds on the handlers of `LOGGING`, whatever the levels of the loggers are set to. A server's
own access log (gunicorn's, a proxy's) writes paths as they came: it is no handler of ours.
"""

from __future__ import annotations

import logging

from project.hiding import hide

#: Below WARNING these print whole requests, answers or contexts of templates: password hashes,
#: session keys and tokens among them, in too many forms to be looked for.
TALKATIVE = ("boto3", "botocore", "django.template", "pynamodb", "s3transfer", "urllib3")


class TalkativeFilter(logging.Filter):
    """Drops what `TALKATIVE` loggers say below WARNING."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        return record.levelno >= logging.WARNING or not any(
            f"{record.name}.".startswith(f"{name}.") for name in TALKATIVE
        )


class HidingFormatter(logging.Formatter):
    """Writes lines and their tracebacks without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return hide(super().format(record), getattr(record, "request", None))
