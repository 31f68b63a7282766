"""Where requests go: the endpoint that was asked for, and one that clients look for only once.

botocore evaluates its rules of endpoints for every request, with the parameters of that request: a
quarter of the time that a small one takes, more for a transaction. For DynamoDB the answer never
changes but where an endpoint carries the account's number, which the endpoint of the region does
as well without. A client that finds no rules takes the region's endpoint from botocore's table of
endpoints. So `session` makes clients that find their endpoint when they are made.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import UnknownServiceError
from botocore.loaders import Loader
from botocore.session import Session

from dynamo.answers import AnswerParserFactory

#: An engine on this machine checks no credentials, but botocore signs with some.
LOCAL_CREDENTIALS = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}

_RULES = "endpoint-rule-set-1"


def configured_endpoint(service: str) -> str | None:
    """The endpoint that the environment names for a service (`dynamodb`); None where none.

    As botocore finds it: when a client is made, which may be long after the settings were read.
    """
    own = os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}")
    return own or os.environ.get("AWS_ENDPOINT_URL")


def is_loopback(url: str | None) -> bool:
    """Whether `url` leads to this machine."""
    return url is not None and urlsplit(url).hostname in {"127.0.0.1", "localhost", "::1"}


class _LoaderWithoutRules(Loader):
    def load_service_model(
        self, service_name: str, type_name: str, api_version: str | None = None
    ) -> Any:
        if type_name == _RULES:
            raise UnknownServiceError(service_name=service_name, known_service_names="")
        return super().load_service_model(service_name, type_name, api_version)


def session() -> boto3.Session:
    """The session that `dynamo.client` makes its client with; costs no request."""
    core = Session()
    # Of the endpoints for FIPS 140 the table does not know all: there the rules stay.
    if not core.get_config_variable("use_fips_endpoint"):
        core.register_component(
            "data_loader", _LoaderWithoutRules(core.get_config_variable("data_path"))
        )
    core.register_component("response_parser_factory", AnswerParserFactory())
    return boto3.Session(botocore_session=core)
