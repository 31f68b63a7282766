"""The defaults of the settings of `dynamo`."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dynamo.apps import complete

OWN = {"DYNAMODB_TABLE_PREFIX": "shop-", "AWS_REGION": "eu-west-1"}


@pytest.mark.parametrize(
    ("given", "has_endpoint", "expected"),
    [
        ({"DEBUG": True}, False, {"DYNAMODB_TABLE_PREFIX": "", "AWS_REGION": "eu-west-2"}),
        ({"DEBUG": True} | OWN, True, OWN),
        ({"DEBUG": False} | OWN, False, OWN),
    ],
)
def test_settings_of_the_project_are_kept_and_the_local_engine_needs_debug_and_no_endpoint(
    given: dict[str, Any],
    has_endpoint: bool,
    expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not has_endpoint:
        monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB")
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    settings = SimpleNamespace(BASE_DIR="/srv/shop", **given)

    complete(settings)

    is_local = given["DEBUG"] and not has_endpoint
    assert vars(settings).items() >= {**expected, "DYNAMODB_LOCAL": is_local}.items()
    assert Path("/srv/shop/var") == settings.DYNAMODB_LOCAL_DIR
