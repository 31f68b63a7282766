"""The defaults of the settings of `dynamo`."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from dynamo import Model
from dynamo.client.settings import complete

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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DYNAMODB_TABLE_PREFIX", 5),
        ("DYNAMODB_MAX_CONNECTIONS", "64"),
        ("DYNAMODB_LEAN", "off"),
        ("DYNAMODB_PAGE_SECONDS", None),
        ("LOG_COMMANDS", "yes"),
    ],
)
def test_a_setting_of_a_wrong_type_is_refused_at_the_start(name: str, value: object) -> None:
    settings = SimpleNamespace(DEBUG=True, **{name: value})

    with pytest.raises(ImproperlyConfigured, match=f"The setting {name} is {value!r}"):
        complete(settings)


@pytest.mark.parametrize(
    ("missing", "module"),
    [("dynamo", "shop.models"), ("locks", "locks.models"), ("sequences", "sequences.models")],
)
def test_a_model_whose_app_is_not_installed_says_so(
    settings: Any, missing: str, module: str
) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != missing]

    with pytest.raises(ImproperlyConfigured, match=f"^Add {missing} to INSTALLED_APPS"):
        type(Model)("Shop", (Model,), {"__module__": module})
