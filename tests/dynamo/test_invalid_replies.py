"""Invalid replies: `send` raises errors of `dynamo.exceptions` only."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from hypothesis import given, settings, strategies as st

from dynamo._internal.client import sending
from dynamo._internal.client.deadline import within
from dynamo._internal.client.sending import send
from dynamo.exceptions import DynamoError, Unavailable
from tests.dynamo.test_lean import Endpoint
from tests.faults.proxy import through

KEY = {"pk": {"S": "a"}}
PUT = {"TableName": "users", "Item": KEY}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
PREFIX = "com.amazonaws.dynamodb.v20120810#"
CODES = st.sampled_from(
    [
        f"{PREFIX}ConditionalCheckFailedException",
        f"{PREFIX}TransactionCanceledException",
        f"{PREFIX}ResourceNotFoundException",
        "ThrottlingException:http://x",
    ]
)


def some_of(**members: Any) -> Any:
    """An object with some of the `members`, or any JSON."""
    return st.fixed_dictionaries({}, optional=members) | ANY_JSON


REASON_CODES = st.sampled_from(["None", "ConditionalCheckFailed"]) | ANY_JSON
REASON = some_of(Code=REASON_CODES, Message=ANY_JSON, Item=some_of(pk=ANY_JSON))
ERRORS = some_of(
    __type=CODES | ANY_JSON,
    message=ANY_JSON,
    Message=ANY_JSON,
    Item=some_of(pk=ANY_JSON),
    CancellationReasons=st.lists(REASON, max_size=3) | ANY_JSON,
)
BODIES = st.one_of(
    st.builds(lambda body: json.dumps(body).encode(), ERRORS),
    st.binary(max_size=16),
    st.builds(lambda: b"[" * 100_000),
    st.just("<html>Bad Gateway</html>".encode("utf-16")),
)
REQUESTS = st.sampled_from(
    [
        ("GetItem", {"TableName": "users", "Key": KEY}),
        ("PutItem", PUT),
        ("TransactWriteItems", {"TransactItems": [{"Put": PUT}], "ClientRequestToken": "token"}),
    ]
)


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture(scope="module", params=["lean", "botocore"])
def endpoint(server: Endpoint, request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    """The endpoint of this process, by the direct path or by botocore's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(django_settings, "DYNAMODB_LEAN", request.param == "lean")
        with through(server.url):
            sending.client()
            yield server


@settings(max_examples=25)
@given(request=REQUESTS, status=st.sampled_from([300, 400, 403, 500, 503]), body=BODIES)
def test_every_error_reply_is_an_error_of_ours(
    endpoint: Endpoint, request: tuple[str, dict[str, Any]], status: int, body: bytes
) -> None:
    endpoint.status, endpoint.body = status, body

    with within(0), pytest.raises(DynamoError) as raised:
        send(*request)

    assert str(raised.value)


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("body", [b"\xff\xfe", b"[]", b"null", b"5", b'"text"', b"", b"<p>Hello"])
def test_a_write_with_an_invalid_reply_may_have_been_made(
    endpoint: Endpoint, status: int, body: bytes
) -> None:
    endpoint.status, endpoint.body = status, body

    with within(0), pytest.raises(Unavailable) as raised:
        send("PutItem", PUT)

    assert raised.value.maybe_written


@pytest.mark.parametrize("reasons", [None, [], [{"Code": "None"}], [{"Code": "None"}] * 2])
def test_a_canceled_transaction_without_reasons_is_an_error(
    endpoint: Endpoint, reasons: list[Any] | None
) -> None:
    answer = {"__type": "TransactionCanceledException", "CancellationReasons": reasons}
    endpoint.status, endpoint.body = 400, json.dumps(answer).encode()

    with pytest.raises(DynamoError, match="TransactionCanceledException"):
        send("TransactWriteItems", {"TransactItems": [{"Put": PUT}], "ClientRequestToken": "t"})
