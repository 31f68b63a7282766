"""Requests leave as they are: botocore does not walk through each of their values.

botocore makes the body of a request by its model of the service, value by value: a third of what a
transaction of many items costs a client. Ours are as on the wire already; only bytes are not JSON.
It is told by its own events, at the client that `dynamo.client` makes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

_KEPT = "dynamo.wire"


def send_as_they_are(client: Any) -> None:
    """Let the client for DynamoDB take parameters for the body, unchecked."""
    events = client.meta.events
    events.register("provide-client-params.dynamodb", _keep)
    events.register_last("before-call.dynamodb", _fill)


def _keep(params: dict[str, Any], context: dict[str, Any], **_event: Any) -> dict[str, Any]:
    context[_KEPT] = params
    return {}


def _fill(params: dict[str, Any], context: dict[str, Any], **_event: Any) -> None:
    params["body"] = json.dumps(context.pop(_KEPT), default=_encoded).encode()


def _encoded(value: bytes) -> str:
    return b64encode(value).decode()
