"""Fixtures of the tests about the whole site."""

from pathlib import Path
from typing import Any

import pytest

from tests.production import apply, checkout_in, collect_into


@pytest.fixture(scope="session")
def production_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the static files are collected, once for all tests."""
    return tmp_path_factory.mktemp("production")


@pytest.fixture(scope="session")
def served_checkout(
    tmp_path_factory: pytest.TempPathFactory, django_test_environment: None
) -> Path:
    """The site's code with its static files collected, for servers."""
    folder = checkout_in(tmp_path_factory.mktemp("served"))
    collect_into(folder / "staticfiles")
    return folder


@pytest.fixture
def production(settings: Any, engine: str, production_root: Path) -> None:
    """The settings of production, on the tests' engine."""
    apply(settings, production_root)
