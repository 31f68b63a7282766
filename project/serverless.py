"""The site on AWS Lambda: `handler` answers HTTP requests, `run_command` runs commands.

`run_tasks` runs background tasks.

Function URLs and HTTP APIs send requests in events of format 2.0. A process handles one event at a
time; between two events it is frozen, for milliseconds or for hours.

Source: https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads
"""

import gc

# Otherwise, the collector would search all the modules imported below, and find nothing.
gc.disable()

import json
import logging
import random
from io import StringIO
from typing import Any, Protocol
from urllib.parse import quote

from apig_wsgi import make_lambda_handler
from django.conf import settings
from snapshot_restore_py import register_after_restore, register_before_snapshot

from dynamo.runtime.deadline import at_most
from dynamo.runtime.processes import begin_process
from invoices.output.helper import compute_here
from project import parameters
from project.logs import request_id
from project.start import WsgiApplication, load_pages, start

#: This much of the function's time remains after a page's deadline. The last attempt may begin just
#: before the deadline and time out after 4 s, and then the page is made.
SECONDS_AFTER_DEADLINE = 4.5

#: A page gets at least this time for its requests, even if the function has less.
LEAST_SECONDS = 0.5

#: The commands that can run here: within 15 minutes, without files, passwords or questions, and
#: with the rights of pages and reports.
COMMANDS = (
    "activateuser",
    "changeemail",
    "changeusername",
    "checkguards",
    "checkinvoices",
    "deactivateuser",
    "deleteuser",
    "grantstaff",
    "revokestaff",
    "showuser",
    "storereport",
    "verifyemail",
)

#: AWS's limit for an answer, as JSON.
MOST_BYTES = 6 * 1024 * 1024

_ASCII = bytes(range(128))

log = logging.getLogger(__name__)

start()
# A process makes one page at a time. AWS ends the process if a page takes too long.
compute_here()
_respond = make_lambda_handler(WsgiApplication(), binary_support=True)


class Context(Protocol):
    """The description of an invocation by AWS."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int: ...


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Answer the HTTP request in `event` (format 2.0) before the function's time is over.

    The client's address is the one that AWS saw (`requestContext.http.sourceIp`). The headers in
    which a client could name another address or request id are dropped. The HTTP request id of logs
    and responses is the id that AWS gave to the invocation.

    An error becomes a 500 and a log line. If it were raised, Lambda would count it as an error of
    the function, and anybody who finds such a request could roll a deployment back.
    """
    try:
        answer = _answer(event, context)
        if (size := _bytes_of(answer)) <= MOST_BYTES:
            return answer
        log.error("An answer of %d bytes is larger than AWS Lambda sends.", size)
        return _failure("This answer is larger than the server can send.", answer["cookies"])
    except Exception:
        request_id.set(context.aws_request_id)
        log.exception("A request could not be answered")
        return _failure("This page could not be shown because of an error on our side.", [])


def _answer(event: dict[str, Any], context: Context) -> dict[str, Any]:
    for name in ("rawPath", "rawQueryString"):
        event[name] = _as_ascii(event[name])
    event["cookies"] = [_as_ascii(cooky) for cooky in event.get("cookies", ())]
    # WSGI replaces hyphens by underscores, so a header with underscores could replace one that is
    # set below.
    sent = {name: _as_ascii(text) for name, text in event["headers"].items() if "_" not in name}
    event["headers"] = sent | {
        "x-forwarded-for": event["requestContext"]["http"]["sourceIp"],
        "x-forwarded-proto": "https",  # AWS ends TLS
        "x-request-id": context.aws_request_id,
    }
    seconds = context.get_remaining_time_in_millis() / 1000 - SECONDS_AFTER_DEADLINE
    with at_most(max(seconds, LEAST_SECONDS)):
        return _respond(event, context)


def _as_ascii(text: str) -> str:
    """`text` in percent encoding where it is not ASCII: WSGI has bytes, and AWS may decode them."""
    return quote(text, safe=_ASCII, errors="replace")


def _failure(text: str, cookies: list[str]) -> dict[str, Any]:
    headers = {name.lower(): value for name, value in settings.ANSWER_HEADERS.items()}
    return {
        "statusCode": 500,
        "headers": headers
        | {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"},
        "cookies": cookies,
        "body": text,
        "isBase64Encoded": False,
    }


def _bytes_of(answer: dict[str, Any]) -> int:
    """The size of the answer in the form that the runtime client sends."""
    size = len(answer["body"])
    # A character takes at most 6 bytes, so most answers need not be encoded twice.
    return size if size * 6 <= MOST_BYTES else len(json.dumps(answer, ensure_ascii=False).encode())


class CommandFailed(Exception):
    """A command failed, or must not run here. Lambda counts this as an error of the function."""


def run_command(event: dict[str, Any], context: Context) -> str:
    """Run the command of `{"command": "storereport", "arguments": ["guards"]}`, one of `COMMANDS`.

    Returns its output. Its log lines have the id of the invocation as their HTTP request id.

    Raises:
        CommandFailed: with the one line that the command would print on a terminal.
    """
    # Imported here, because pages need no commands.
    from django.core.management import CommandError, call_command

    request_id.set(context.aws_request_id)
    name = event.get("command")
    arguments = event.get("arguments", [])
    if name not in COMMANDS:
        raise CommandFailed(f"{name!r} cannot run here. Use one of {', '.join(COMMANDS)}.")
    if not (
        isinstance(arguments, list) and all(isinstance(argument, str) for argument in arguments)
    ):
        raise CommandFailed("The arguments must be a list of texts.")
    printed = StringIO()
    try:
        call_command(name, *arguments, stdout=printed, stderr=printed)
    except CommandError as error:
        raise CommandFailed(f"{name}: {error}") from None
    except SystemExit as ended:
        raise CommandFailed(f"{name}: ended with exit code {ended.code}") from None
    except Exception as error:
        # Our log hides secrets. Lambda's own log line would contain them.
        log.exception("The command %s failed", name)
        raise CommandFailed(f"{name}: {type(error).__name__}; see the log.") from None
    return printed.getvalue()


def run_tasks(event: dict[str, object], context: Context) -> dict[str, int]:
    """Run the background tasks that are due: the handler of the table's stream and of the sweep.

    Log lines have the id of the invocation as their HTTP request id.
    """
    from outbox import serverless  # imported here, because pages run no tasks

    request_id.set(context.aws_request_id)
    return serverless.run_tasks(event, context)


def _after_restore() -> None:
    """Let each restored process draw its own random values. A snapshot is restored many times."""
    random.seed()
    begin_process()
    if settings.SECRET_KEY_PARAMETER:
        # A snapshot may be weeks old.
        parameters.load_keys()


def _before_snapshot() -> None:
    """Fill the snapshot with all pages. No restored process could use a connection of this one."""
    load_pages()
    begin_process()


register_before_snapshot(_before_snapshot)
register_after_restore(_after_restore)

# From now on, the collector searches only objects that pages make, not these.
gc.freeze()
gc.enable()
