"""Fixtures of the tests of stored items."""

from pathlib import Path

import pytest

from tests.stored.releases import Stored, load


@pytest.fixture
def stored(engine: str, release: Path) -> Stored:
    """Everything that `release` stored, in the tables."""
    return load(release)
