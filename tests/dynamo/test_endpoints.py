"""A client finds its endpoint once; it is the endpoint that botocore's rules give."""

import re
from functools import cache
from typing import Any

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, UnknownServiceError
from botocore.session import Session

from dynamo.client import endpoints

ACCOUNT = "123456789012"
KEYS = Credentials("nobody", "nothing")
KEYS_OF_ACCOUNT = Credentials("nobody", "nothing", account_id=ACCOUNT)


@cache
def regions() -> list[str]:
    """Some regions of each partition, because the rules differ by partition, and two for FIPS."""
    session = Session()
    found = [
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("dynamodb", partition)[::12]
    ]
    assert len(found) > 5
    return [*found, "fips-us-east-1", "us-gov-west-1-fips"]


def ours(region: str, keys: Credentials) -> tuple[str, str]:
    return address(endpoints.session(keys, region), region)


@cache
def botocores_session(keys: Credentials) -> Session:
    session = Session()
    session.set_credentials(keys.access_key, keys.secret_key, account_id=keys.account_id)
    return session


def theirs(region: str, keys: Credentials) -> tuple[str, str]:
    return address(botocores_session(keys), region)


@pytest.fixture(autouse=True)
def _no_endpoint_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB")


class Sent(Exception):
    """Raised in place of sending."""


def address(session: Session, region: str) -> tuple[str, str]:
    """The URL of a request and the scope of its signature (without the day), or its error."""
    seen: list[tuple[str, str]] = []

    def note(request: Any, **_others: Any) -> None:
        authorization = request.headers["Authorization"].decode()
        scope = authorization.split("Credential=")[1].split(",")[0]
        seen.append((request.url, re.sub(r"/\d{8}/", "/DAY/", scope)))
        raise Sent

    try:
        client = session.create_client("dynamodb", region)
        client.meta.events.register("before-send.dynamodb", note)
        client.get_item(TableName="users", Key={"pk": {"S": "x"}})
    except BotoCoreError as error:
        return type(error).__name__, str(error)
    except Sent:
        pass
    return seen[0]


FIPS, DUAL_STACK = "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"
MODE = "AWS_ACCOUNT_ID_ENDPOINT_MODE"
#: Variables of the environment, and the keys of a client.
ENVIRONMENTS: dict[str, tuple[dict[str, str], Credentials]] = {
    "nothing": ({}, KEYS),
    "FIPS": ({FIPS: "true"}, KEYS),
    "dual stack": ({DUAL_STACK: "true"}, KEYS),
    "the account's endpoint": ({MODE: "required"}, KEYS_OF_ACCOUNT),
    "the account's endpoint without its id": ({MODE: "required"}, KEYS),
    "all": ({FIPS: "true", DUAL_STACK: "true", MODE: "required"}, KEYS_OF_ACCOUNT),
}


@pytest.mark.parametrize(("variables", "keys"), ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_the_endpoint_of_a_region_is_that_of_the_rules(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], keys: Credentials
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    for region in regions():
        assert ours(region, keys) == theirs(region, keys)


def test_an_endpoint_of_the_account_that_is_only_preferred_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    preferred = ours("eu-central-1", KEYS_OF_ACCOUNT)
    assert ACCOUNT in theirs("eu-central-1", KEYS_OF_ACCOUNT)[0]

    monkeypatch.setenv(MODE, "disabled")
    assert preferred == theirs("eu-central-1", KEYS_OF_ACCOUNT)


@pytest.mark.parametrize("service", ["s3", "signin", "sso", "sso-oidc", "sts"])
def test_the_rules_of_other_services_are_kept(service: str) -> None:
    """Services that give credentials need their rules."""
    loader = endpoints.session(KEYS, "eu-central-1").get_component("data_loader")

    assert loader.load_service_model(service, "endpoint-rule-set-1")
    with pytest.raises(UnknownServiceError):
        loader.load_service_model("dynamodb", "endpoint-rule-set-1")


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://127.84.2.19:8000", True),
        ("http://localhost:8000/", True),
        ("http://[::1]:8000", True),
        ("https://dynamodb.eu-west-1.amazonaws.com", False),
        ("http://127.0.0.1.example.org:8000", False),
        ("http://10.0.0.1", False),
        (None, False),
    ],
)
def test_an_endpoint_of_this_machine_is_recognized(url: str | None, is_here: bool) -> None:
    assert endpoints.is_loopback(url) is is_here
