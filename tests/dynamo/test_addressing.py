"""The client's endpoint, which is found once, is the one that botocore's rules give."""

from __future__ import annotations

import re
from typing import Any

import boto3
import pytest

from dynamo import addressing

CREDENTIALS = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing"}
PARTITIONS = ["aws", "aws-cn", "aws-us-gov"]


def regions() -> list[str]:
    session = boto3.Session()
    return [
        region
        for partition in PARTITIONS
        for region in session.get_available_regions("dynamodb", partition)
    ]


class Sent(Exception):
    """Raised in place of sending."""


def address(session: boto3.Session, region: str) -> tuple[str, str]:
    """Where a request would go, and the scope of its signature, but for the day."""
    seen: list[tuple[str, str]] = []

    def note(request: Any, **_others: Any) -> None:
        authorization = request.headers["Authorization"].decode()
        scope = authorization.split("Credential=")[1].split(",")[0]
        seen.append((request.url, re.sub(r"/\d{8}/", "/DAY/", scope)))
        raise Sent

    client = session.client("dynamodb", region, **CREDENTIALS)
    client.meta.events.register("before-send.dynamodb", note)
    with pytest.raises(Sent):
        client.get_item(TableName="users", Key={"pk": {"S": "x"}})
    return seen[0]


def test_the_endpoint_of_every_region_is_the_one_of_the_rules():
    ours, theirs = addressing.session(), boto3.Session()

    assert regions()
    for region in regions():
        assert address(ours, region) == address(theirs, region)


def test_an_endpoint_that_was_asked_for_dual_stack_is_the_one_of_the_rules(monkeypatch):
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", "true")

    assert address(addressing.session(), "eu-central-1") == address(boto3.Session(), "eu-central-1")


@pytest.mark.parametrize("region", ["us-east-1", "us-gov-west-1"])
def test_with_endpoints_for_fips_the_rules_decide(monkeypatch, region):
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")

    assert address(addressing.session(), region) == address(boto3.Session(), region)


def test_an_endpoint_from_the_environment_is_used(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:4")

    assert address(addressing.session(), "eu-central-1")[0] == "http://127.0.0.1:4/"
