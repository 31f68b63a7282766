"""The shared client of a process; `send`, which repeats what may be repeated; `write_one`.

All models, transactions, the cache and the commands of a process use `send`, and share botocore's
connection pool. Operations on items take the shorter path of `client.lean`. The client is
thread-safe. It is made on first use, and again in a forked child, because sockets must not be
shared.
"""

import itertools
import logging
import os
import time
from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import botocore
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
from django.utils.asyncio import async_unsafe

from dynamo import exceptions
from dynamo.client import connections, credentials, endpoints
from dynamo.client.breaker import Breaker, fails_fast
from dynamo.client.credentials import ProcessCredentials
from dynamo.client.lean import OPERATIONS, LeanClient, can_bypass_botocore
from dynamo.client.private import Client
from dynamo.client.retries import (
    Fault,
    answer_of,
    cancellation_codes,
    code_of,
    fault_of,
    is_read,
    is_repeatable,
    is_stalled,
    outcome_of,
    pause_seconds,
)
from dynamo.runtime.deadline import operation_ends_at, page_is_over, seconds_until_recovery
from dynamo.runtime.processes import PerProcess
from dynamo.signals import request_sent
from dynamo.wire.types import Address, Answer, Item, Request

log = logging.getLogger(__name__)

CONNECT_SECONDS = 1.0
READ_SECONDS = 3.0

#: Reads whose request can ask for consistency.
CONSISTENT = {"GetItem", "Query", "Scan"}


def client() -> Client:
    """The process's botocore client, made on first use (which starts a local engine)."""
    return _shared().botocore


def reset() -> None:
    """Forget the client and its credentials; the next request makes new ones from the settings."""
    # The credentials are forgotten first, because another thread may make a client in between.
    credentials.of_process.reset()
    _shared.reset()


def is_unreachable() -> bool:
    """Whether recent requests to DynamoDB failed without a connection or a reply."""
    shared = _shared.made()
    return shared is not None and shared.breaker.is_open


@dataclass(frozen=True)
class _Shared:
    """The client that all requests of a process share. Without `lean`, botocore sends them."""

    botocore: Client
    lean: LeanClient | None
    credentials: ProcessCredentials
    breaker: Breaker = field(default_factory=Breaker)


def _make_shared() -> _Shared:
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=settings.DYNAMODB_MAX_CONNECTIONS,
        parameter_validation=False,
        # The user agent is constant. botocore would build it for each request, in an eighth of its
        # time.
        user_agent=f"django-on-dynamodb Botocore/{botocore.__version__}",
        # botocore makes one attempt, because `send` retries. Only its legacy mode refuses a reply
        # with a wrong CRC.
        retries={"total_max_attempts": 1, "mode": "legacy"},
        # NO_PROXY does not name the local engine's address.
        proxies={} if settings.DYNAMODB_LOCAL or endpoints.TEST_ENDPOINT in os.environ else None,
    )
    region, signing, endpoint = _destination()
    session = endpoints.session(signing, region)
    try:
        made = session.create_client("dynamodb", region, endpoint_url=endpoint, config=config)
    except ValueError as error:
        # The value is not a URL, for example in `~/.aws/config`.
        raise InvalidEndpointConfigurationError(msg=str(error)) from error
    shared = cast(Client, made)
    return _Shared(shared, _lean_client(shared, signing), signing)


def _lean_client(made: Client, signing: ProcessCredentials) -> LeanClient | None:
    """The lean client, if it can be used.

    The connections of `client` are bounded in either case.
    """
    try:
        connections.bound(made._endpoint.http_session)
        if settings.DYNAMODB_LEAN and can_bypass_botocore(made):
            return LeanClient(made, signing)
    except (AttributeError, TypeError) as error:
        log.warning(
            "This version of botocore lacks a name that the short path relies on, so all requests "
            "to DynamoDB go through botocore: %s",
            error,
        )
    return None


def _destination() -> tuple[str | None, ProcessCredentials, str | None]:
    """The region, the credentials and the endpoint. botocore finds those that are None."""
    tested = os.environ.get(endpoints.TEST_ENDPOINT)
    if tested is not None:
        if not tested:
            raise RuntimeError(
                "This test has no tables in DynamoDB: give it the fixture `dynamodb`, or derive it "
                "from dynamo.test.TestCase. Its setUpClass calls super().setUpClass() first."
            )
        return "us-east-1", ProcessCredentials(credentials.LOCAL), tested
    if settings.DYNAMODB_LOCAL:
        from dynamo.client import engine

        return "us-east-1", ProcessCredentials(credentials.LOCAL), engine.endpoint()
    if not endpoints.is_loopback(endpoints.configured_endpoint("dynamodb")):
        return settings.AWS_REGION, credentials.of_process(), None
    signing = credentials.of_engine()
    if signing is None:
        return "us-east-1", ProcessCredentials(credentials.LOCAL), None
    return settings.AWS_REGION, signing, None


_shared: PerProcess[_Shared] = PerProcess(_make_shared)


@async_unsafe(
    "An event loop must not wait for DynamoDB. Await the asynchronous form of the call, such as "
    "acreate, or use sync_to_async."
)
def send(
    operation: str,
    request: Mapping[str, object],
    *,
    repeatable: bool | None = None,
    repeat_conflicts: bool = True,
) -> Answer:
    """Send one request, repeat it if that is safe, and return DynamoDB's answer.

    `operation` is the API's name (`GetItem`), `request` its parameters, with attribute values in
    DynamoDB's JSON form (`{"S": …}`). Reads are strongly consistent, except those of an index and
    those whose request says otherwise. The answer has the consumed capacity.

    After a temporary failure, the request is repeated with full jitter until the deadline
    (`runtime.deadline`), if it may be repeated (`client.retries`). The caller can override this: a
    write that counts up under a condition that its own success makes false is `repeatable`. A
    transaction that is stalled inside DynamoDB gets one more attempt, 5.2 s after its first. A
    page's request is not sent while DynamoDB cannot be reached (`client.breaker`).

    Without `repeat_conflicts`, a transaction that was canceled because of another one or of
    throttling is not repeated: the caller builds a new one. After a lost reply it is repeated
    anyway, until its result is known.

    Raises:
        SynchronousOnlyOperation: an event loop runs in this thread (see DJANGO_ALLOW_ASYNC_UNSAFE).
        TransactionConflict: only without `repeat_conflicts`.
        ConditionFailed: the condition of a single write was false.
        TransactionCancelled: conditions of a transaction were false, and no reason was temporary.
        TableMissing: a table does not exist.
        Rejected: DynamoDB refuses the request, now and later.
        Unavailable: no usable answer before the deadline. Or the first reply was lost, and the
            repeated write was rejected.
    """
    if page_is_over():
        raise exceptions.Unavailable(operation, "the page's time is over")
    request = _completed(operation, request)
    if repeatable is None:
        repeatable = is_repeatable(operation, request)
    began = time.monotonic()
    ends_at = operation_ends_at()
    maybe_done = stalled = False
    for attempt in itertools.count():
        attempt_began = time.monotonic()
        try:
            return _attempt(operation, request, attempt, ends_at)
        except (BotoCoreError, ClientError) as error:
            fault = fault_of(error)
            if fault is Fault.FINAL:
                raise _error_of(operation, request, error, maybe_done=maybe_done) from error
            maybe_done = maybe_done or fault is Fault.MAYBE_DONE
            stalled = stalled or is_stalled(error)
            if not (repeat_conflicts or maybe_done) and cancellation_codes(error):
                throttled = outcome_of(error) == "throttled"
                raise exceptions.TransactionConflict(operation, throttled) from error
            drawn = pause_seconds(attempt)
            pause: float | None = drawn
            if time.monotonic() + drawn > ends_at:  # the next attempt would begin too late
                pause = seconds_until_recovery(began, attempt_began) if stalled else None
            fails_now = fails_fast() and is_unreachable()
            if pause is None or fails_now or (maybe_done and not repeatable):
                unknown = maybe_done and not is_read(operation)
                raise exceptions.Unavailable(operation, _reason(error), unknown) from error
        time.sleep(pause)
    raise AssertionError("unreachable: the loop ends by return or raise")


def read_item(address: Mapping[str, object]) -> Item | None:
    """The stored item with the TableName and Key of `address`; None if there is none.

    Costs 1 request and 1 read unit per 4 KB. Raises as `send`.
    """
    return send("GetItem", address).get("Item") or None


@dataclass(eq=False)
class Outcome:
    """The result of `write_one`, which is true if the write was done."""

    request: Request
    #: The item that the request asked for with `ReturnValues`, if the write was done.
    item: Item | None = None
    #: The reason why the write was not done.
    refused: exceptions.ConditionFailed | None = None

    def __bool__(self) -> bool:
        return self.refused is None

    @property
    def repeated(self) -> bool:
        """Whether it was refused, but an earlier attempt of the same write may have been done."""
        return self.refused is not None and self.refused.repeated

    @cached_property
    def stored(self) -> Item | None:
        """The stored item for which the condition was false; None if there is none.

        Costs 1 request and 1 read unit per 4 KB if the refusal does not contain it.
        """
        address: Address = {"TableName": self.request["TableName"], "Key": self.request["Key"]}
        if self.refused is None:
            return None
        return stored_after(self.refused, address, may_be_done=self.repeated)


def write_one(operation: str, request: Request, *, repeatable: bool = True) -> Outcome:
    """Send a PutItem, UpdateItem or DeleteItem that has a condition and is not in a transaction.

    The cache, locks, counters and uploads build such requests in the form in which they are sent.
    Building the conditions of a model takes about as long as a local engine takes for the request.

    `request` has TableName and Key, also for a PutItem. It is repeated after a lost reply, unless
    it is not `repeatable`. The first attempt may be the reason why the second is refused
    (`Outcome.repeated`). In this case, the caller has to recognize its own write in the stored
    item.

    Raises:
        Unavailable, Rejected, TableMissing: see `send`.
    """
    sent: Mapping[str, object] = request
    if operation == "PutItem":
        # The item of a PutItem contains the key.
        sent = {name: value for name, value in request.items() if name != "Key"}
    try:
        answer = send(operation, sent, repeatable=repeatable)
    except exceptions.ConditionFailed as refused:
        return Outcome(request, refused=refused)
    return Outcome(request, answer.get("Attributes"))


def stored_after(
    refused: exceptions.ConditionFailed, address: Address, *, may_be_done: bool
) -> Item | None:
    """The stored item after a refused write, which is read if the answer does not contain it.

    Some engines never return it, and no engine does if the item is absent.

    Raises:
        Unavailable: it cannot be read, so it is unknown whether a write that `may_be_done` was
            done.
    """
    try:
        return refused.item or read_item(address)
    except exceptions.Unavailable as error:
        raise exceptions.Unavailable(refused.operation, error.reason, may_be_done) from error


def _completed(operation: str, request: Mapping[str, object]) -> dict[str, object]:
    if operation not in OPERATIONS:
        return dict(request)
    completed: dict[str, object] = {"ReturnConsumedCapacity": "TOTAL", **request}
    if operation in CONSISTENT and "ConsistentRead" not in completed:
        # DynamoDB refuses consistent reads of a global secondary index.
        completed["ConsistentRead"] = "IndexName" not in completed
    if operation == "BatchGetItem":
        asked = cast(Mapping[str, dict[str, object]], request["RequestItems"])
        completed["RequestItems"] = {
            table: wanted | {"ConsistentRead": True} for table, wanted in asked.items()
        }
    return completed


def _attempt(operation: str, request: dict[str, object], attempt: int, ends_at: float) -> Answer:
    shared = _shared()
    if fails_fast() and not shared.breaker.admits():
        url = shared.botocore.meta.endpoint_url
        raise EndpointConnectionError(endpoint_url=url, error="it was not reachable lately")
    response: Answer = {}
    failure: BaseException | None = None
    sent_at = time.monotonic()
    began = time.perf_counter()
    try:
        shared.credentials.wait(ends_at)
        sent_at = time.monotonic()
        response = _perform(shared, operation, request)
    except BaseException as error:
        failure = error
        raise
    finally:
        seconds = time.perf_counter() - began
        shared.breaker.note(sent_at, failure)
        request_sent.send(
            sender=None,
            operation=operation,
            request=request,
            response=response,
            error=failure,
            retries=attempt,
            seconds=seconds,
        )
    return response


def _perform(shared: _Shared, operation: str, request: Mapping[str, object]) -> Answer:
    """Send the request once. `dynamo.test` replaces this to simulate faults."""
    if shared.lean is not None and operation in OPERATIONS:
        return shared.lean.send(operation, request)
    answer: Answer = getattr(shared.botocore, xform_name(operation))(**request)
    return answer


def _error_of(
    operation: str,
    request: dict[str, object],
    error: BotoCoreError | ClientError,
    *,
    maybe_done: bool,
) -> exceptions.DynamoError:
    code = type(error).__name__
    message = str(error)
    if isinstance(error, ClientError):
        code = code_of(error) or "Unknown"
        message = error.response.get("Error", {}).get("Message", "")
        answer = answer_of(error)
        if code == "ConditionalCheckFailedException":
            return exceptions.ConditionFailed(operation, maybe_done, answer.get("Item"))
        if code == "TransactionCanceledException":
            reasons = [
                exceptions.CancellationReason(
                    reason.get("Code", "None"), reason.get("Message") or "", reason.get("Item")
                )
                for reason in answer.get("CancellationReasons", [])
            ]
            # The answer shows which condition was false only if it has a reason for each action.
            actions = cast(Sized, request["TransactItems"])
            if cancellation_codes(error) and len(reasons) == len(actions):
                return exceptions.TransactionCancelled(operation, reasons, maybe_done)
    if maybe_done and not is_read(operation):
        # Only the repeated attempt was refused, for example because the credentials have expired.
        return exceptions.Unavailable(operation, code, maybe_written=True)
    if code == "ResourceNotFoundException":
        return exceptions.TableMissing(operation, code, message)
    return exceptions.Rejected(operation, code, message)


def _reason(error: BotoCoreError | ClientError) -> str:
    if isinstance(error, CredentialRetrievalError):
        return str(error)
    return code_of(error) or type(error).__name__
