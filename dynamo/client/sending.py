"""The one way to DynamoDB: a shared client, and `send`, which repeats what may be repeated.

All models, transactions, the cache and the commands of a process go through `send`, and so share
botocore's connection pool. Those on items take the shorter way of `dynamo.client.lean`. All is made
on first use, again in a forked child (sockets must not be shared), and safe in threads.
"""

from __future__ import annotations

import itertools
import logging
import time
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    InvalidEndpointConfigurationError,
)
from django.conf import settings

from dynamo.client import addressing, connections, credentials
from dynamo.client.breaker import Breaker, fails_fast
from dynamo.client.credentials import ProcessCredentials
from dynamo.client.deadline import operation_ends_at, page_is_over, recovery_begins_at
from dynamo.client.lean import OPERATIONS, LeanWay, may_go_lean
from dynamo.client.retries import (
    Fault,
    cancellation_codes,
    fault_of,
    is_read,
    is_repeatable,
    is_stalled,
    outcome_of,
    pause_seconds,
)
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
from dynamo.processes import PerProcess
from dynamo.signals import request_sent

log = logging.getLogger(__name__)

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
    credentials.reset()


def is_unreachable() -> bool:
    """Whether requests to DynamoDB failed lately, for lack of a connection or of any reply."""
    ways = _ways.made()
    return ways is not None and ways.breaker.is_open


@dataclass(frozen=True)
class _Ways:
    """How requests leave; `lean` is None where all of them go through botocore."""

    botocore: Any
    lean: LeanWay | None
    credentials: ProcessCredentials
    breaker: Breaker = field(default_factory=Breaker)


@dataclass(frozen=True)
class _Whereabouts:
    region: str | None
    signing: ProcessCredentials
    endpoint: str | None = None  # None: as botocore finds it


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
    to = _whereabouts()
    # Its stubs have an overload for each service.
    session: Any = addressing.session(to.signing, to.region)
    try:
        made = session.client("dynamodb", to.region, endpoint_url=to.endpoint, config=config)
    except ValueError as error:
        # An endpoint that is none, as `~/.aws/config` may have it.
        raise InvalidEndpointConfigurationError(msg=str(error)) from error
    return _Ways(made, _lean_way(made, to.signing), to.signing)


def _lean_way(made: Any, signing: ProcessCredentials) -> LeanWay | None:
    """The short way, where it may be taken.

    In either case names are looked up with a bound, and idle connections are closed.
    """
    try:
        connections.bound(made)
        connections.close_when_idle(made)
        if settings.DYNAMODB_LEAN and may_go_lean(made):
            return LeanWay(made, signing)
    except (AttributeError, TypeError) as error:
        log.warning(
            "This version of botocore lacks a name that the short way relies on, so all requests "
            "to DynamoDB go through botocore: %s",
            error,
        )
    return None


def _whereabouts() -> _Whereabouts:
    if settings.DYNAMODB_LOCAL:
        from dynamo import engine  # here, as production never needs it

        return _Whereabouts("us-east-1", ProcessCredentials(credentials.LOCAL), engine.endpoint())
    if not addressing.is_loopback(addressing.configured_endpoint("dynamodb")):
        return _Whereabouts(settings.AWS_REGION, credentials.of_process())
    signing = credentials.of_engine()
    if signing is None:
        return _Whereabouts("us-east-1", ProcessCredentials(credentials.LOCAL))
    return _Whereabouts(settings.AWS_REGION, signing)


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
    `dynamo.client.deadline`; see `dynamo.client.retries` for what may be repeated. A transaction
    that is stalled inside DynamoDB gets one more attempt, 5.2 s after its first. A page's request
    is not sent while DynamoDB cannot be reached (`dynamo.client.breaker`). A caller whose write
    counts up, but under a condition that its own success makes false, says so: `repeatable=True`.

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
    began, ends_at = time.monotonic(), operation_ends_at()
    maybe_done = stalled = False
    for attempt in itertools.count():
        attempt_began = time.monotonic()
        try:
            return _attempt(operation, request, attempt, ends_at)
        except (BotoCoreError, ClientError) as error:
            fault = fault_of(error)
            if fault is Fault.FINAL:
                raise _final(operation, request, error, maybe_done=maybe_done) from error
            maybe_done = maybe_done or fault is Fault.MAYBE_DONE
            stalled = stalled or is_stalled(error)
            if afresh and not maybe_done and cancellation_codes(error):
                throttled = outcome_of(error) == "throttled"
                raise Hindered(operation, throttled=throttled) from error
            pause = _pause(attempt, ends_at)
            if pause is None and stalled:
                pause = _pause_until_recovery(began, attempt_began)
            in_vain = fails_fast() and is_unreachable()
            if pause is None or in_vain or (maybe_done and not repeatable):
                written = maybe_done and not is_read(operation)
                raise Unavailable(operation, _reason(error), maybe_written=written) from error
        time.sleep(pause)
    raise AssertionError("unreachable: the loop ends by return or raise")


def _pause(attempt: int, ends_at: float) -> float | None:
    """How long to wait after this attempt; None if the next one would begin too late."""
    pause = pause_seconds(attempt)
    return None if time.monotonic() + pause > ends_at else pause


def _pause_until_recovery(began: float, last_began: float) -> float | None:
    """How long a stalled transaction waits for its last attempt; None if there is none left."""
    recovery = recovery_begins_at(began)
    if recovery is None or last_began >= recovery:
        return None
    return max(0.0, recovery - time.monotonic())


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


def _attempt(
    operation: str, request: dict[str, Any], retries: int, ends_at: float
) -> dict[str, Any]:
    ways = _ways()
    if fails_fast() and not ways.breaker.admits():
        url = ways.botocore.meta.endpoint_url
        raise EndpointConnectionError(endpoint_url=url, error="it was not reachable lately")
    response: dict[str, Any] = {}
    failure: BaseException | None = None
    sent_at, began = time.monotonic(), time.perf_counter()
    try:
        ways.credentials.wait(ends_at)
        sent_at = time.monotonic()
        if ways.lean is not None and operation in OPERATIONS:
            response = ways.lean.send(operation, request)
        else:
            response = getattr(ways.botocore, xform_name(operation))(**request)
    except BaseException as error:
        failure = error
        raise
    finally:
        seconds = time.perf_counter() - began
        ways.breaker.note(sent_at, failure)
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


def _final(
    operation: str,
    request: dict[str, Any],
    error: BotoCoreError | ClientError,
    *,
    maybe_done: bool,
) -> DynamoError:
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "Unknown")
        message = error.response.get("Error", {}).get("Message", "")
    else:
        code, message = type(error).__name__, str(error)
    if isinstance(error, ClientError) and code == "ConditionalCheckFailedException":
        return ConditionFailed(operation, repeated=maybe_done, stored=_stored(error))
    if isinstance(error, ClientError) and code == "TransactionCanceledException":
        reasons = _reasons(error)
        says_why = any(reason.code != "None" for reason in reasons)
        if says_why and len(reasons) == len(request["TransactItems"]):
            return TransactionCancelled(operation, reasons)
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
    if isinstance(error, CredentialRetrievalError):
        return str(error)
    return type(error).__name__
