"""A worker that registers with a peer's own code, in the peers' Python."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import boto3

from benchmarks.registrant import HASH, next_registrant
from benchmarks.worker import Cost, Operation, options_of, work

ENDPOINT = os.environ["AWS_ENDPOINT_URL_DYNAMODB"]
REGION = os.environ["AWS_REGION"]


def pydynox() -> Operation:
    """A transaction of three puts, each if it is not there."""
    from pydynox import DynamoDBClient

    client = DynamoDBClient(
        region=REGION,
        access_key=os.environ["AWS_ACCESS_KEY_ID"],
        secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        endpoint_url=ENDPOINT,
    )

    def register(name: str) -> None:
        who = next_registrant(name)
        user: dict[str, Any] = {
            "pk": who.pk,
            "userName": who.username,
            "email": who.email,
            "password": HASH,
            "isActive": True,
            "isStaff": False,
            "joinedAt": datetime.now(UTC).isoformat(),
            "version": 1,
        }
        guards: list[dict[str, Any]] = [
            {"pk": key, "owner": who.pk}
            for key in (f"userName#{who.username}", f"email#{who.email}")
        ]
        client.sync_transact_write([_put_if_absent(item) for item in (user, *guards)])

    return register


def _put_if_absent(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "put",
        "table": "users",
        "item": item,
        "condition_expression": "attribute_not_exists(pk)",
    }


def django_dynamodb_backend() -> Operation:
    """`create_user`: two queries of an index, then a put."""
    import django
    from django.conf import settings

    settings.configure(
        INSTALLED_APPS=[
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "django_dynamodb_backend",
            "django_dynamodb_backend.contrib.auth_dynamo",
        ],
        AUTH_USER_MODEL="auth_dynamo.DynamoUser",
        DATABASES={
            "default": {
                "ENGINE": "django_dynamodb_backend.db",
                "OPTIONS": {
                    "region_name": REGION,
                    "endpoint_url": ENDPOINT,
                    "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
                    "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
                },
            }
        },
        USE_TZ=True,
    )
    from django_dynamodb_backend.contrib.auth_dynamo.apps import AuthDynamoConfig

    # The original sets a property that Django 5.2 does not allow; the rest works without it.
    AuthDynamoConfig.ready = lambda _self: None
    django.setup()
    from django_dynamodb_backend.contrib.auth_dynamo.managers import DynamoUserManager
    from django_dynamodb_backend.contrib.auth_dynamo.models import DynamoUser, create_user_table

    create_user_table()
    manager = DynamoUserManager()
    manager.model = DynamoUser

    def register(name: str) -> bool:
        who = next_registrant(name)
        try:
            manager.create_user(who.username, who.email, password=None)
        except ValueError:
            if not who.may_be_taken:
                raise
            return False
        return True

    return register


CONTENDERS: dict[str, Callable[[], Operation]] = {
    make.__name__: make for make in (pydynox, django_dynamodb_backend)
}


def main() -> None:
    options = options_of(CONTENDERS)
    boto3.setup_default_session(region_name=REGION)
    work(CONTENDERS[options.contender](), options, Cost())


if __name__ == "__main__":
    main()
