"""Fixtures of the tests of `dynamo`."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(params=[True, False], ids=["lean", "botocore"])
def path(request: pytest.FixtureRequest, settings: Any) -> None:
    """Send requests by the direct path, and by botocore's."""
    settings.DYNAMODB_LEAN = request.param
