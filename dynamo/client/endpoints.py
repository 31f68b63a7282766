"""The endpoint that requests go to, resolved once per client.

botocore evaluates DynamoDB's endpoint rules for every request, which takes a quarter of the time of
a small request. Without rules, a client takes the region's endpoint from a table of botocore, once,
when it is made. It is the same endpoint, unless the configuration asks for FIPS 140, for dual-stack
or for the account's own endpoint. In these cases, the rules are used.

By default (`AWS_ACCOUNT_ID_ENDPOINT_MODE=preferred`) the rules would choose an endpoint named after
the account, if its id is known. The region's endpoint serves every account as well.
"""

import os
from collections.abc import Mapping
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import UnknownServiceError
from botocore.loaders import Loader
from botocore.session import Session
from django.conf import settings

from dynamo.client import credentials
from dynamo.client.credentials import ProcessCredentials
from dynamo.client.lean import AnswerParserFactory

#: The variable with the endpoint of a test's engine, for all requests. `dynamo.test` sets it.
TEST_ENDPOINT = "DYNAMODB_TEST_ENDPOINT"


def configured_endpoint(service: str) -> str | None:
    """The endpoint that the environment names for a service (`dynamodb`), if any.

    The environment is read when a client is created, as in botocore. That may be long after the
    settings were read.
    """
    own = os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}")
    return own or os.environ.get("AWS_ENDPOINT_URL")


def is_loopback(url: str | None) -> bool:
    """Whether the host in `url` is this machine."""
    try:
        host = urlsplit(url or "").hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class _LoaderWithoutRules(Loader):
    def load_service_model(
        self, service_name: str, type_name: str, api_version: str | None = None
    ) -> Mapping[str, object]:
        if service_name == "dynamodb" and type_name == "endpoint-rule-set-1":
            raise UnknownServiceError(service_name=service_name, known_service_names="")
        return super().load_service_model(service_name, type_name, api_version)


def session(signing: Credentials, region: str | None) -> Session:
    """A session whose clients sign with `signing`. Its DynamoDB client is only for `region`.

    It is a session of botocore. One of boto3 has the same clients, but imports resources and S3
    transfers.
    """
    core = Session()
    chain = SimpleNamespace(load_credentials=lambda: signing)
    core.register_component("credential_provider", chain)
    if not _needs_rules(core, region):
        core.register_component(
            "data_loader", _LoaderWithoutRules(core.get_config_variable("data_path"))
        )
    core.register_component("response_parser_factory", AnswerParserFactory())
    return core


def client(service: str, config: Config) -> Any:
    """A client of another service of AWS (`s3`), with the process's credentials and region."""
    signing = None
    if is_loopback(configured_endpoint(service)):
        signing = credentials.of_engine() or ProcessCredentials(credentials.LOCAL)
    made = session(signing or credentials.of_process(), settings.AWS_REGION)
    return made.create_client(service, settings.AWS_REGION, config=config)


def _needs_rules(core: Session, region: str | None) -> bool:
    mode = core.get_config_variable("account_id_endpoint_mode") or ""
    return bool(
        core.get_config_variable("use_fips_endpoint")
        or core.get_config_variable("use_dualstack_endpoint")
        # botocore understands a region such as `fips-us-east-1` as a request for FIPS.
        or "fips" in (region or core.get_config_variable("region") or "")
        or mode.lower() == "required"
    )
