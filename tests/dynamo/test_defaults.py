"""The defaults of the settings of `dynamo`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dynamo.apps import complete


def test_a_project_without_settings_gets_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB")
    settings = SimpleNamespace(DEBUG=True, BASE_DIR="/srv/shop")

    complete(settings)

    assert settings.DYNAMODB_TABLE_PREFIX == ""
    assert settings.DYNAMODB_LOCAL is True
    assert Path("/srv/shop/var") == settings.DYNAMODB_LOCAL_DIR
    assert settings.AWS_REGION is None


@pytest.mark.parametrize("debug", [True, False])
def test_the_settings_of_a_project_stay_and_production_or_an_endpoint_needs_no_local_engine(
    debug: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not debug:
        monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB")
    settings = SimpleNamespace(DEBUG=debug, DYNAMODB_TABLE_PREFIX="shop-", AWS_REGION="eu-west-1")

    complete(settings)

    assert settings.DYNAMODB_LOCAL is False
    assert (settings.DYNAMODB_TABLE_PREFIX, settings.AWS_REGION) == ("shop-", "eu-west-1")
