"""Fixtures of the tests of `dynamo`."""

import gc
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cheap_collections() -> None:
    """Garbage collections of this module leave out what earlier tests made: it takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=[True, False], ids=["lean", "botocore"])
def path(request: pytest.FixtureRequest, settings: Any) -> None:
    """Send requests by the direct path, and by botocore's."""
    settings.DYNAMODB_LEAN = request.param
