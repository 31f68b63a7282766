"""A worker that registers: our code, and code written by hand with boto3 and PynamoDB.

With the name `race-…` an operation takes one of ten names, else one of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import django

django.setup()

import boto3
import urllib3
from botocore.config import Config
from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.connection import Connection
from pynamodb.exceptions import TransactWriteError
from pynamodb.models import Model
from pynamodb.transactions import TransactWrite

from accounts import services
from accounts.exceptions import AccountError
from accounts.models import User
from benchmarks.registrant import HASH, Registrant, next_registrant
from benchmarks.worker import Cost, Operation, options_of, work
from dynamo.exceptions import Refused
from dynamo.signals import request_sent

TABLE = User.table()
REGION = os.environ["AWS_REGION"]
COST = Cost()
request_sent.connect(COST.note)


def register(name: str) -> bool:
    """Our operation. Returns whether an account was created."""
    who = next_registrant(name)
    try:
        services.register(username=who.username, email=who.email, password_hash=HASH)
    except (AccountError, Refused):
        if not who.may_be_taken:
            raise
        return False
    return True


def create(name: str) -> bool:
    """A model's `create` with two unique values; the operation adds what the site asks of them."""
    who = next_registrant(name)
    try:
        User.create(pk=who.pk, username=who.username, email=who.email, password=HASH)
    except User.Taken:
        if not who.may_be_taken:
            raise
        return False
    return True


def _item(who: Registrant) -> dict[str, Any]:
    return {
        "pk": {"S": who.pk},
        "userName": {"S": who.username},
        "email": {"S": who.email},
        "password": {"S": HASH},
        "isActive": {"BOOL": True},
        "isStaff": {"BOOL": False},
        "joinedAt": {"S": datetime.now(UTC).isoformat()},
        "version": {"N": "1"},
    }


def _request(who: Registrant) -> dict[str, Any]:
    guards = [
        {"pk": {"S": key}, "owner": {"S": who.pk}}
        for key in (f"userName#{who.username}", f"email#{who.email}")
    ]
    return {
        "ClientRequestToken": str(uuid.uuid4()),
        "ReturnConsumedCapacity": "TOTAL",
        "TransactItems": [
            {
                "Put": {
                    "TableName": TABLE,
                    "Item": item,
                    "ConditionExpression": "attribute_not_exists(pk)",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            }
            for item in (_item(who), *guards)
        ],
    }


def bare_boto3(name: str) -> None:
    """The same transaction by a boto3 client with its defaults."""
    COST.note(_bare.transact_write_items(**_request(next_registrant(name))))


def by_hand(name: str) -> None:
    """The lower bound: the same bytes, signed here (AWS Signature Version 4), sent by urllib3."""
    body = json.dumps(_request(next_registrant(name))).encode()
    response = _pool.request("POST", "/", body=body, headers=_signed(body))
    if response.status != 200:
        raise SystemExit(f"{response.status}: {response.data!r}")
    COST.note(json.loads(response.data))


def _signed(body: bytes) -> dict[str, str]:
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = "DynamoDB_20120810.TransactWriteItems"
    headers = {"host": _host, "x-amz-date": now, "x-amz-target": target}
    names = ";".join(headers)
    lines = "".join(f"{header}:{value}\n" for header, value in headers.items())
    digest = hashlib.sha256(body).hexdigest()
    canonical = f"POST\n/\n\n{lines}\n{names}\n{digest}"
    scope = f"{now[:8]}/{REGION}/dynamodb/aws4_request"
    to_sign = "\n".join(
        ("AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest())
    )
    signature = hmac.new(_signing_key(now[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
    credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
    return {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Date": now,
        "X-Amz-Target": target,
        "Authorization": (
            f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, "
            f"Signature={signature}"
        ),
    }


_signing_keys: dict[str, bytes] = {}


def _signing_key(day: str) -> bytes:
    if day not in _signing_keys:
        key = f"AWS4{os.environ['AWS_SECRET_ACCESS_KEY']}".encode()
        for part in (day, REGION, "dynamodb", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        _signing_keys[day] = key
    return _signing_keys[day]


class _Item(Model):
    """An account or a guard item, declared with PynamoDB alone."""

    class Meta:
        table_name = TABLE
        region = REGION
        host = os.environ["AWS_ENDPOINT_URL_DYNAMODB"]

    pk = UnicodeAttribute(hash_key=True)
    owner = UnicodeAttribute(null=True)
    userName = UnicodeAttribute(null=True)
    email = UnicodeAttribute(null=True)
    password = UnicodeAttribute(null=True)
    isActive = BooleanAttribute(null=True)
    isStaff = BooleanAttribute(null=True)
    joinedAt = UnicodeAttribute(null=True)
    version = NumberAttribute(null=True)


def pynamodb(name: str) -> bool:
    """PynamoDB's own transaction, written by hand."""
    who = next_registrant(name)
    user = _Item(
        who.pk,
        userName=who.username,
        email=who.email,
        password=HASH,
        isActive=True,
        isStaff=False,
        joinedAt=datetime.now(UTC).isoformat(),
        version=1,
    )
    guards = [
        _Item(key, owner=who.pk) for key in (f"userName#{who.username}", f"email#{who.email}")
    ]
    try:
        with TransactWrite(connection=_connection) as write:
            for item in (user, *guards):
                write.save(item, condition=_Item.pk.does_not_exist())
    except TransactWriteError:
        if not who.may_be_taken:
            raise
        return False
    return True


CONTENDERS: dict[str, Operation] = {
    function.__name__: function for function in (register, create, bare_boto3, by_hand, pynamodb)
}


def main() -> None:
    options = options_of(CONTENDERS)
    work(CONTENDERS[options.contender], options, COST)


_bare = boto3.client("dynamodb", config=Config(max_pool_connections=64))
_endpoint = os.environ["AWS_ENDPOINT_URL_DYNAMODB"]
_host = urlsplit(_endpoint).netloc
_pool = urllib3.connection_from_url(_endpoint, maxsize=64)
_connection = Connection(region=REGION, host=_endpoint)
_connection.client.meta.events.register(
    "after-call.dynamodb", lambda parsed, **_event: COST.note(parsed)
)

if __name__ == "__main__":
    main()
