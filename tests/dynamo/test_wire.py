"""What leaves the client is what botocore would have made of the same request."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from hypothesis import given
from hypothesis import strategies as st

from dynamo import wire

TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.one_of(
        st.builds(lambda text: {"S": text}, TEXTS),
        st.builds(lambda number: {"N": str(number)}, st.integers()),
        st.builds(lambda data: {"B": data}, st.binary(max_size=8)),
        st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
        st.just({"NULL": True}),
        st.builds(lambda texts: {"SS": texts}, st.lists(TEXTS, max_size=3)),
        st.builds(lambda blobs: {"BS": blobs}, st.lists(st.binary(max_size=4), max_size=3)),
    ),
    lambda inner: st.one_of(
        st.builds(lambda values: {"L": values}, st.lists(inner, max_size=3)),
        st.builds(lambda values: {"M": values}, st.dictionaries(TEXTS, inner, max_size=3)),
    ),
    max_leaves=8,
)
ITEMS = st.dictionaries(TEXTS, VALUES, max_size=4)


class Sent(Exception):
    """A request came as far as the network."""


def client(*, as_they_are: bool) -> Any:
    """A client whose requests end before the network."""
    made = boto3.client(
        "dynamodb",
        "us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(parameter_validation=False),
    )
    if as_they_are:
        wire.send_as_they_are(made)

    def stop(request: AWSPreparedRequest, **_event: Any) -> AWSResponse:
        raise Sent(request)

    made.meta.events.register("before-send.dynamodb", stop)
    return made


OURS, BOTOCORES = client(as_they_are=True), client(as_they_are=False)


def sent(made: Any, method: str, request: dict[str, Any]) -> Any:
    with pytest.raises(Sent) as caught:
        getattr(made, method)(**request)
    return caught.value.args[0]


@given(ITEMS)
def test_a_transaction_has_the_body_that_botocore_makes(item: dict[str, Any]) -> None:
    request = {
        "TransactItems": [
            {
                "Put": {
                    "TableName": "users",
                    "Item": item,
                    "ConditionExpression": "attribute_not_exists(pk)",
                    "ExpressionAttributeValues": {":value": {"S": "é"}},
                }
            }
        ],
        "ClientRequestToken": "token",
        "ReturnConsumedCapacity": "TOTAL",
    }

    ours = sent(OURS, "transact_write_items", request)
    botocores = sent(BOTOCORES, "transact_write_items", request)

    assert json.loads(ours.body) == json.loads(botocores.body)
    assert ours.headers.keys() == botocores.headers.keys()
    assert int(ours.headers["Content-Length"]) == len(ours.body)


@given(ITEMS)
def test_a_single_write_has_the_body_that_botocore_makes(item: dict[str, Any]) -> None:
    request = {"TableName": "users", "Item": item, "ReturnConsumedCapacity": "TOTAL"}

    ours, botocores = (sent(each, "put_item", request) for each in (OURS, BOTOCORES))

    assert json.loads(ours.body) == json.loads(botocores.body)


def test_what_is_neither_json_nor_bytes_is_refused_before_it_leaves() -> None:
    with pytest.raises(TypeError):
        OURS.put_item(TableName="users", Item={"pk": {"S": object()}})
