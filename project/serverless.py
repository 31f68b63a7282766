"""The site on AWS Lambda: `project.serverless.handler`, behind a function URL or an HTTP API.

Both send events of format 2.0. A process handles one event at a time; between two events it is
frozen, for milliseconds or for hours. `export_handler` makes the files that pages ask for.

Source: https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads
"""

from __future__ import annotations

import json
import logging
import random
from typing import Any

from apig_wsgi import make_lambda_handler
from django_guid import set_guid
from snapshot_restore_py import register_after_restore, register_before_snapshot

from dynamo.client.deadline import page
from dynamo.processes import begin_process
from project.wsgi import application

#: How much of the function's time remains after a page's deadline: the last attempt may begin just
#: before the deadline and takes 4 s to time out, and then the page is made.
SECONDS_AFTER_DEADLINE = 4.5

#: The least that a page gets for its requests, however little time the function has.
LEAST_SECONDS = 0.5

#: AWS's limit for an answer, as JSON.
MOST_BYTES = 6 * 1024 * 1024

log = logging.getLogger(__name__)

_respond = make_lambda_handler(application, binary_support=True)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer the HTTP request in `event` (format 2.0) before the function's time is over.

    The client's address is the one that AWS saw (`requestContext.http.sourceIp`). The headers in
    which a client could name another address or request id are dropped. The HTTP request id of logs
    and responses is the id that AWS gave to the invocation.
    """
    event["headers"] |= {
        "x-forwarded-for": event["requestContext"]["http"]["sourceIp"],
        "x-forwarded-proto": "https",  # AWS ends TLS
        "x-request-id": context.aws_request_id,
    }
    seconds = context.get_remaining_time_in_millis() / 1000 - SECONDS_AFTER_DEADLINE
    with page(max(seconds, LEAST_SECONDS)):
        answer = _respond(event, context)
    if (size := _bytes_of(answer)) <= MOST_BYTES:
        return answer
    log.error("An answer of %d bytes is larger than AWS Lambda sends.", size)
    return {
        "statusCode": 500,
        "headers": {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"},
        "cookies": answer["cookies"],
        "body": "This answer is larger than the server can send.",
        "isBase64Encoded": False,
    }


def export_handler(event: dict[str, Any], context: Any) -> None:
    """Make the export that a page asked for in an asynchronous invocation."""
    from invoices import export_making  # only here, as it takes time

    set_guid(context.aws_request_id)
    export_making.make(event, context.get_remaining_time_in_millis() / 1000)


def _bytes_of(answer: dict[str, Any]) -> int:
    """The size of the answer as the runtime client sends it."""
    size = len(answer["body"])
    # A character takes at most 6 bytes, so most answers need not be encoded twice.
    return size if size * 6 <= MOST_BYTES else len(json.dumps(answer, ensure_ascii=False).encode())


def _after_restore() -> None:
    """Let each restored process draw its own random values. Many are restored from one snapshot."""
    random.seed()
    begin_process()


# Before the snapshot, so that it holds no connection that a restored process could not use.
register_before_snapshot(begin_process)
register_after_restore(_after_restore)
