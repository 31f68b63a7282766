"""Which failures mean "again", and which requests may be sent again.

botocore would repeat by kind of error alone. Whether repeating is right depends on the request
as well: an `ADD` whose reply was lost may have counted already. So botocore's own retries are
off, and this is the one place that decides.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
    SSLError,
)
from botocore.parsers import ResponseParserError

FIRST_PAUSE_SECONDS = 0.025
LONGEST_PAUSE_SECONDS = 1.0

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
_THROTTLED = {
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
}
_CONFLICT = {"ReplicatedWriteConflictException", "TransactionConflictException"}
# Of the same client request token: an earlier attempt, which may yet be carried out.
_IN_PROGRESS = {"TransactionInProgressException"}
_SERVER_FAULT = {"InternalServerError", "InternalServerErrorException", "ServiceUnavailable"}
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
_CONFLICTING = {"TransactionConflict"}
_REASONS_TO_REPEAT = _CONFLICTING | {"ThrottlingError", "ProvisionedThroughputExceeded"}

_READS = {
    "BatchGetItem",
    "DescribeContinuousBackups",
    "DescribeTable",
    "DescribeTimeToLive",
    "GetItem",
    "ListTables",
    "Query",
    "Scan",
    "TransactGetItems",
}
_COUNTS_UP = re.compile(r"\bADD\b|list_append|[^\s(,=]\s*[+-]\s*[^\s]", re.IGNORECASE)


class Fault(Enum):
    """What a failed attempt says about its request."""

    FINAL = "an answer: the same request would be refused again"
    NOT_DONE = "passing, and certainly not carried out"
    MAYBE_DONE = "passing, and perhaps carried out: only the reply was lost"


def fault_of(error: BotoCoreError | ClientError) -> Fault:
    """Judge one failed attempt."""
    if isinstance(error, ClientError):
        return _fault_of_answer(error)
    # Credentials come by the network too, and nothing was sent without them.
    if isinstance(error, (CredentialRetrievalError, MetadataRetrievalError)):
        return Fault.NOT_DONE
    # TLS can break while the reply is read, though botocore counts it among failures to connect.
    if isinstance(error, ConnectionError) and not isinstance(error, SSLError):
        return Fault.NOT_DONE
    if isinstance(error, (HTTPClientError, SSLError, ChecksumError, ResponseParserError)):
        return Fault.MAYBE_DONE
    return Fault.FINAL


def _fault_of_answer(error: ClientError) -> Fault:
    code = _code_of(error)
    if code in _THROTTLED or code in _CONFLICT:
        return Fault.NOT_DONE
    if code == "TransactionCanceledException":
        again = not _REASONS_TO_REPEAT.isdisjoint(cancellation_codes(error))
        return Fault.NOT_DONE if again else Fault.FINAL
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    maybe_done = code in _IN_PROGRESS or code in _SERVER_FAULT or status >= 500
    return Fault.MAYBE_DONE if maybe_done else Fault.FINAL


def _code_of(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def outcome_of(error: BaseException) -> str:
    """What became of a failed attempt, in one of a few words.

    `refused`: by a condition. `conflict`: another's transaction was in the way, or an earlier
    attempt of the same. `throttled`. `failed`: an error of DynamoDB's own. `unanswered`: no
    connection, no usable answer, no credentials, or an interruption. `rejected`: everything else
    that it refuses.
    """
    if not isinstance(error, ClientError):
        return "unanswered"
    code = _code_of(error)
    reasons = set(cancellation_codes(error))
    if code in _CONFLICT | _IN_PROGRESS or reasons & _CONFLICTING:
        return "conflict"
    if code in _THROTTLED or reasons & _REASONS_TO_REPEAT:
        return "throttled"
    if code == "ConditionalCheckFailedException" or reasons == {"ConditionalCheckFailed"}:
        return "refused"
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return "failed" if code in _SERVER_FAULT or status >= 500 else "rejected"


def is_stalled(error: BotoCoreError | ClientError) -> bool:
    """Whether an earlier attempt of the same transaction is still in progress."""
    return isinstance(error, ClientError) and _code_of(error) in _IN_PROGRESS


def cancellation_codes(error: BaseException) -> list[str]:
    """Why a transaction was cancelled: the code of each action that was not innocent."""
    if not isinstance(error, ClientError):
        return []
    reasons: list[Mapping[str, Any]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]  # absent from botocore's type
    codes = [str(reason.get("Code", "None")) for reason in reasons]
    return [code for code in codes if code != "None"]


def is_read(operation: str) -> bool:
    """Whether the operation writes nothing."""
    return operation in _READS


def is_repeatable(operation: str, request: Mapping[str, Any]) -> bool:
    """Whether sending `request` twice does no more than sending it once.

    Reads are; a transaction is, by its client request token; a write that sets or removes is. An
    update that counts up from what is stored (`ADD`, `+`, `-`, `list_append`) is not.
    """
    if is_read(operation):
        return True
    if operation == "TransactWriteItems":
        return "ClientRequestToken" in request
    return not _COUNTS_UP.search(request.get("UpdateExpression", ""))


def pause_seconds(attempt: int) -> float:
    """How long to wait after the attempt numbered `attempt` (0, 1, …): full jitter.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    ceiling = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(attempt, 10))
    return random.uniform(0, ceiling)  # noqa: S311 - spreads load, guards no secret
