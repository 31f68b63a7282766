"""Which failures are retried, and for which requests.

botocore considers only the kind of error. The request matters as well: an `ADD` whose reply was
lost may have counted already. Therefore, botocore's own retries are off.
"""

import random
from collections.abc import Mapping
from enum import Enum
from typing import cast

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

from dynamo.wire.types import Answer

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
# An earlier attempt with the same client request token is in progress, and may still be carried
# out.
_IN_PROGRESS = {"TransactionInProgressException"}
_SERVER_FAULT = {"InternalServerError", "InternalServerErrorException", "ServiceUnavailable"}
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
_CONFLICT_REASONS = {"TransactionConflict"}
_PASSING_REASONS = _CONFLICT_REASONS | {"ThrottlingError", "ProvisionedThroughputExceeded"}

_READS = ("BatchGet", "Describe", "Get", "List", "Query", "Scan", "TransactGet")


class Fault(Enum):
    """The kinds of failed attempts: whether the request may have been done."""

    FINAL = "DynamoDB answered, and would answer the same again"
    NOT_DONE = "passing, and certainly not carried out"
    MAYBE_DONE = "passing, and perhaps carried out: only the reply was lost"


def fault_of(error: BotoCoreError | ClientError) -> Fault:
    """The kind of a failed attempt, by its error."""
    if isinstance(error, ClientError):
        outcome = outcome_of(error)
        if outcome == "failed" or is_stalled(error):
            return Fault.MAYBE_DONE
        return Fault.NOT_DONE if outcome in {"conflict", "throttled"} else Fault.FINAL
    # TLS can fail while the reply is read, although botocore reports a failure to connect.
    if isinstance(error, (HTTPClientError, SSLError, ChecksumError)):
        return Fault.MAYBE_DONE
    # Credentials are read over the network as well, and nothing is sent without them.
    passing = (ConnectionError, CredentialRetrievalError, MetadataRetrievalError)
    return Fault.NOT_DONE if isinstance(error, passing) else Fault.FINAL


def code_of(error: BaseException) -> str:
    """The code of DynamoDB's error, such as `ConditionalCheckFailedException`; empty for others."""
    return error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""


def outcome_of(error: BaseException) -> str:
    """The outcome of a failed attempt, in one word.

    `refused`: by a condition. `conflict`: with another transaction, or with an earlier attempt of
    the same one. `throttled`. `failed`: an error inside DynamoDB. `unanswered`: no connection, no
    usable answer, no credentials, or an interruption. `rejected`: any other error of DynamoDB.
    """
    if not isinstance(error, ClientError):
        return "unanswered"
    code = code_of(error)
    reasons = set(cancellation_codes(error))
    if code in _CONFLICT | _IN_PROGRESS or reasons & _CONFLICT_REASONS:
        return "conflict"
    if code in _THROTTLED or reasons & _PASSING_REASONS:
        return "throttled"
    if code == "ConditionalCheckFailedException" or reasons == {"ConditionalCheckFailed"}:
        return "refused"
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return "failed" if code in _SERVER_FAULT or status >= 500 else "rejected"


def is_stalled(error: BotoCoreError | ClientError) -> bool:
    """Whether an earlier attempt of the same transaction is still in progress."""
    return code_of(error) in _IN_PROGRESS


def answer_of(error: ClientError) -> Answer:
    """The answer, with the members that botocore's type lacks."""
    return cast(Answer, error.response)


def cancellation_codes(error: BaseException) -> list[str]:
    """The reasons why a transaction was canceled: the codes of the actions that caused it."""
    if not isinstance(error, ClientError):
        return []
    codes = [
        reason.get("Code", "None") for reason in answer_of(error).get("CancellationReasons", ())
    ]
    return [code for code in codes if code != "None"]


def is_read(operation: str) -> bool:
    """Whether the operation writes nothing."""
    return operation.startswith(_READS)


def is_repeatable(operation: str, request: Mapping[str, object]) -> bool:
    """Whether sending `request` twice has the same effect as sending it once.

    True for reads, for a put or a deletion, and for a transaction with a client request token. An
    update may depend on the stored value, so the code that builds it decides (`updates`).
    """
    lacks_token = operation == "TransactWriteItems" and "ClientRequestToken" not in request
    return operation != "UpdateItem" and not lacks_token


def pause_seconds(attempt: int) -> float:
    """The pause after the attempt number `attempt` (0, 1, …), with full jitter.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    ceiling = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(attempt, 10))
    return random.uniform(0, ceiling)  # noqa: S311 - spreads load, guards no secret
