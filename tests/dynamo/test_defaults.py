"""A project that sets nothing of `dynamo` gets what suits development; what it sets stays."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dynamo.apps import complete


def test_a_project_without_our_settings_gets_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB")
    settings = SimpleNamespace(DEBUG=True, BASE_DIR="/srv/shop")

    complete(settings)

    assert settings.DYNAMODB_TABLE_PREFIX == ""
    assert settings.DYNAMODB_LOCAL is True
    assert Path("/srv/shop/var") == settings.DYNAMODB_LOCAL_DIR
    assert settings.AWS_REGION is None


@pytest.mark.parametrize("debug", [True, False])
def test_no_local_engine_stands_in_for_an_endpoint_or_in_production(
    debug: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not debug:
        monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB")
    settings = SimpleNamespace(DEBUG=debug)

    complete(settings)

    assert settings.DYNAMODB_LOCAL is False


def test_what_a_project_sets_stays() -> None:
    settings = SimpleNamespace(DEBUG=True, DYNAMODB_TABLE_PREFIX="shop-", AWS_REGION="eu-west-1")

    complete(settings)

    assert settings.DYNAMODB_TABLE_PREFIX == "shop-"
    assert settings.AWS_REGION == "eu-west-1"
