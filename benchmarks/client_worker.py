"""A worker that sends UpdateItems one after the other, through our client or another one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config

from benchmarks.worker import Cost, Operation, options_of, work

COST = Cost()
TABLE = "counters"
REGION = os.environ["AWS_REGION"]
ENDPOINT = os.environ["AWS_ENDPOINT_URL_DYNAMODB"]


def _request(name: str) -> dict[str, Any]:
    return {
        "TableName": TABLE,
        "Key": {"counterName": {"S": name}},
        "UpdateExpression": "ADD currentValue :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
        "ReturnValues": "UPDATED_NEW",
        "ReturnConsumedCapacity": "TOTAL",
    }


def ours() -> Operation:
    """Our client, which sends all requests of the site."""
    import django

    django.setup()
    from dynamo.client.sending import send
    from dynamo.signals import request_sent

    request_sent.connect(COST.note)
    return lambda name: send("UpdateItem", _request(name))


def change() -> Operation:
    """A model's `change` of one attribute, under its version."""
    import django

    django.setup()
    from accounts.models import User
    from dynamo import request_sent

    user = User.create(pk="bench", username="bench", email="bench@example.org", password="")
    request_sent.connect(COST.note)
    names = itertools.cycle(("Ann", "Bob"))
    return lambda _name: user.change(full_name=next(names))


def bare_boto3() -> Operation:
    """A boto3 client with its defaults."""
    client = boto3.client("dynamodb", config=Config(max_pool_connections=64))
    return lambda name: COST.note(client.update_item(**_request(name)))


def pynamodb() -> Operation:
    """A model's `update`."""
    from pynamodb.attributes import NumberAttribute, UnicodeAttribute
    from pynamodb.models import Model

    class Counter(Model):
        class Meta:
            table_name = TABLE
            region = REGION
            host = ENDPOINT

        name = UnicodeAttribute(hash_key=True, attr_name="counterName")
        value = NumberAttribute(attr_name="currentValue")

    return lambda name: Counter(name).update(actions=[Counter.value.add(1)])


def pydynox() -> Operation:
    """pydynox's client, which is compiled."""
    from pydynox import DynamoDBClient

    client = DynamoDBClient(
        region=REGION,
        access_key=os.environ["AWS_ACCESS_KEY_ID"],
        secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        endpoint_url=ENDPOINT,
    )
    return lambda name: client.sync_update_item(
        TABLE,
        {"counterName": name},
        update_expression="ADD currentValue :one",
        expression_attribute_values={":one": 1},
        return_values="UPDATED_NEW",
    )


CONTENDERS: dict[str, Callable[[], Operation]] = {
    make.__name__: make for make in (ours, change, bare_boto3, pynamodb, pydynox)
}


def main() -> None:
    options = options_of(CONTENDERS)
    work(CONTENDERS[options.contender](), options, COST)


if __name__ == "__main__":
    main()
