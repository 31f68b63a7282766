"""The one way to DynamoDB: a shared client, and `send`, which repeats what may be repeated.

All models, transactions, the cache and the commands of a process go through `send`, and so share
botocore's connection pool. Those on items take the shorter way of `dynamo.lean`. All is made on
first use, again in a forked child (sockets must not be shared), and safe in threads.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, InvalidEndpointConfigurationError
from django.conf import settings

from dynamo import addressing
from dynamo.deadline import operation_ends_at, page_is_over
from dynamo.exceptions import (
    CancellationReason,
    ConditionFailed,
    DynamoError,
    Hindered,
    Rejected,
    TableMissing,
    TransactionCancelled,
    Unavailable,
)
from dynamo.lean import OPERATIONS, LeanWay, may_go_lean
from dynamo.perprocess import PerProcess
from dynamo.retries import (
    Fault,
    cancellation_codes,
    fault_of,
    is_read,
    is_repeatable,
    outcome_of,
    pause_seconds,
)
from dynamo.signals import request_sent

CONNECT_SECONDS = 1.0
READ_SECONDS = 3.0

_CONSISTENT = {"GetItem", "Query", "Scan"}
_CONTROL = {
    "CreateTable",
    "DeleteTable",
    "DescribeContinuousBackups",
    "DescribeTable",
    "DescribeTimeToLive",
    "ListTables",
    "UpdateContinuousBackups",
    "UpdateTable",
    "UpdateTimeToLive",
}


def client() -> Any:
    """The process's botocore client, made on first use (which starts an embedded engine)."""
    return _ways().botocore


def reset() -> None:
    """Forget the client; the next request makes a new one (by other settings)."""
    _ways.reset()


@dataclass(frozen=True)
class _Ways:
    """How requests leave; `lean` is None where all of them go through botocore."""

    botocore: Any
    lean: LeanWay | None


def _make_ways() -> _Ways:
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=settings.DYNAMODB_MAX_CONNECTIONS,
        parameter_validation=False,
        # A constant: botocore would put it together anew for each request, an eighth of its time.
        user_agent=f"django-on-dynamodb Boto3/{boto3.__version__}",
        # One attempt; of botocore's modes only the old one refuses a reply whose CRC is wrong.
        retries={"total_max_attempts": 1, "mode": "legacy"},
    )
    session: Any = addressing.session()  # its stubs have an overload for each service
    try:
        made = session.client("dynamodb", config=config, **_whereabouts(session))
    except ValueError as error:
        # An endpoint that is none, as `~/.aws/config` may have it.
        raise InvalidEndpointConfigurationError(msg=str(error)) from error
    lean = LeanWay(made) if settings.DYNAMODB_LEAN and may_go_lean(made) else None
    return _Ways(made, lean)


def _whereabouts(session: boto3.Session) -> dict[str, Any]:
    if settings.DYNAMODB_LOCAL:
        from dynamo import engine  # here, as production never needs it

        return {"endpoint_url": engine.endpoint(), **_LOCAL}
    is_local = addressing.is_loopback(addressing.configured_endpoint("dynamodb"))
    if is_local and not session.get_credentials():
        return _LOCAL
    return {"region_name": settings.AWS_REGION}


_LOCAL: dict[str, Any] = {"region_name": "us-east-1", **addressing.LOCAL_CREDENTIALS}

_ways: PerProcess[_Ways] = PerProcess(_make_ways)


def send(
    operation: str,
    request: dict[str, Any],
    *,
    repeatable: bool | None = None,
    afresh: bool = False,
) -> dict[str, Any]:
    """Send one request, repeat it where that is right, and return DynamoDB's answer.

    `operation` is the API's name (`GetItem`), `request` its parameters with attribute values as
    on the wire (`{"S": …}`). Reads are made strongly consistent, and the consumed capacity is
    asked for. Passing failures are repeated with full jitter until the deadline of
    `dynamo.deadline`; see `dynamo.retries` for what may be repeated. A caller whose write counts
    up, but under a condition that its own success makes false, says so: `repeatable=True`.

    With `afresh` a transaction that another one or throttling cancelled is not repeated: its caller
    has a better one by then. Once a reply was lost it is repeated all the same, until it is known
    what became of it.

    Raises:
        Hindered: see `afresh`.
        ConditionFailed: the condition of a single write was false.
        TransactionCancelled: conditions of a transaction were false, and no reason was passing.
        TableMissing: a table is not there.
        Rejected: DynamoDB will not do this, now or later.
        Unavailable: no usable answer before the deadline; or the first answer was lost, and the
            repetition of the write was rejected.
    """
    if page_is_over():
        raise Unavailable(operation, "the page's time is over")
    request = _completed(operation, request)
    if repeatable is None:
        repeatable = is_repeatable(operation, request)
    ends_at = operation_ends_at()
    maybe_done = False
    for attempt in itertools.count():
        try:
            return _attempt(operation, request, attempt)
        except (BotoCoreError, ClientError) as error:
            fault = fault_of(error)
            if fault is Fault.FINAL:
                raise _final(operation, error, maybe_done=maybe_done) from error
            maybe_done = maybe_done or fault is Fault.MAYBE_DONE
            if afresh and not maybe_done and cancellation_codes(error):
                throttled = outcome_of(error) == "throttled"
                raise Hindered(operation, throttled=throttled) from error
            pause = pause_seconds(attempt)
            out_of_time = time.monotonic() + pause > ends_at
            if out_of_time or (maybe_done and not repeatable):
                written = maybe_done and not is_read(operation)
                raise Unavailable(operation, _reason(error), maybe_written=written) from error
        time.sleep(pause)
    raise AssertionError("unreachable: the loop ends by return or raise")


def _completed(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    if operation in _CONTROL:
        return request
    request = {"ReturnConsumedCapacity": "TOTAL"} | request
    if operation in _CONSISTENT:
        request["ConsistentRead"] = True
    if operation == "BatchGetItem":
        request["RequestItems"] = {
            table: wanted | {"ConsistentRead": True}
            for table, wanted in request["RequestItems"].items()
        }
    return request


def _attempt(operation: str, request: dict[str, Any], retries: int) -> dict[str, Any]:
    ways = _ways()
    response: dict[str, Any] = {}
    failure: BotoCoreError | ClientError | None = None
    began = time.perf_counter()
    try:
        if ways.lean is not None and operation in OPERATIONS:
            response = ways.lean.send(operation, request)
        else:
            response = getattr(ways.botocore, xform_name(operation))(**request)
    except (BotoCoreError, ClientError) as error:
        failure = error
        raise
    finally:
        seconds = time.perf_counter() - began
        request_sent.send(
            sender=None,
            operation=operation,
            request=request,
            response=response,
            error=failure,
            retries=retries,
            seconds=seconds,
        )
    return response


def _final(operation: str, error: BotoCoreError | ClientError, *, maybe_done: bool) -> DynamoError:
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "Unknown")
        message = error.response.get("Error", {}).get("Message", "")
    else:
        code, message = type(error).__name__, str(error)
    if isinstance(error, ClientError) and code == "ConditionalCheckFailedException":
        return ConditionFailed(operation, repeated=maybe_done, stored=_stored(error))
    if isinstance(error, ClientError) and code == "TransactionCanceledException":
        return TransactionCancelled(operation, _reasons(error))
    if maybe_done and not is_read(operation):
        # It refuses this attempt (its credentials ran out, say) and tells nothing of the first.
        return Unavailable(operation, code, maybe_written=True)
    if code == "ResourceNotFoundException":
        return TableMissing(operation, code, message)
    return Rejected(operation, code, message)


def _stored(error: ClientError) -> dict[str, Any] | None:
    stored: dict[str, Any] | None = error.response.get("Item")  # type: ignore[assignment]  # absent from botocore's type
    return stored


def _reasons(error: ClientError) -> list[CancellationReason]:
    reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]  # absent from botocore's type
    return [
        CancellationReason(
            reason.get("Code", "None"), reason.get("Message", ""), reason.get("Item")
        )
        for reason in reasons
    ]


def _reason(error: BotoCoreError | ClientError) -> str:
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code", "") or type(error).__name__
    return type(error).__name__
