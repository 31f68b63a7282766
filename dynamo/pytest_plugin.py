"""The pytest plugin: the fixtures `dynamodb`, `max_requests` and faults; see `dynamo.test`.

pytest loads it before it measures coverage, so everything else is imported later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dynamo.test import Tables

# This comes before any code of the project. Outside of tests with the fixture, requests are
# refused.
os.environ["DYNAMODB_TEST_ENDPOINT"] = ""


@pytest.fixture(scope="session")
def dynamodb_tables() -> Tables:
    """The project's tables, on an engine that only this worker uses."""
    from dynamo.test import tables_of_process

    return tables_of_process()


@pytest.fixture
def dynamodb(dynamodb_tables: Tables) -> Iterator[None]:
    """Give the test the project's tables, empty, on a local engine."""
    with dynamodb_tables.open():
        yield


@pytest.fixture
def max_requests() -> Callable[[int], AbstractContextManager[object]]:
    """`with max_requests(3): …` fails if more requests are sent."""
    from dynamo.test import max_requests

    return max_requests


def _fault(name: str) -> object:
    @pytest.fixture(name=name)
    def fixture() -> object:
        from dynamo import test

        return getattr(test, name)

    fixture.__doc__ = f"`with {name}(…): …`; see `dynamo.test.{name}`."
    return fixture


lost_reply, throttled, conflict, unavailable, late = map(
    _fault, ("lost_reply", "throttled", "conflict", "unavailable", "late")
)


class _WithoutDatabase:
    """Replaces pytest-django's fixtures of a relational database, in a project that has none."""

    @pytest.fixture
    def _django_db_helper(self, dynamodb: None) -> None:
        """The base of `db`, `transactional_db`, `admin_user`, `live_server` and the mark."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        from django.core.exceptions import ImproperlyConfigured

        from dynamo.test import check_case

        try:
            for case in {getattr(item, "cls", None) for item in items}:
                check_case(case)
        except ImproperlyConfigured as error:
            raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Register fixtures after those of pytest-django, which they replace."""
    from django.conf import settings

    plugins = session.config.pluginmanager
    if plugins.has_plugin("django") and (
        os.environ.get("DJANGO_SETTINGS_MODULE") or settings.configured
    ):
        from dynamo.runtime.no_database.base import has_database

        if not has_database():
            plugins.register(_WithoutDatabase())
