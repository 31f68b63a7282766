"""A boto3 session whose clients find their endpoint once, when they are made.

botocore evaluates its rules of endpoints for every request, with the parameters of that request: a
quarter of the time that a small one takes, more for a transaction. For DynamoDB the answer never
changes but where an endpoint carries the account's number, which the endpoint of the region does
as well without. A client that finds no rules takes the region's endpoint from botocore's table of
endpoints.
"""

from __future__ import annotations

from typing import Any

import boto3
from botocore.exceptions import UnknownServiceError
from botocore.loaders import Loader
from botocore.session import Session

_RULES = "endpoint-rule-set-1"


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
    return boto3.Session(botocore_session=core)
