"""The pytest plugin: the fixtures `dynamodb`, `max_requests` and faults; see `dynamo.test`.

pytest loads it before it measures coverage, so everything else is imported later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dynamo.test import Tables

# Before any code of the project runs: requests are refused outside of tests with the fixture.
os.environ["DYNAMODB_TEST_ENDPOINT"] = ""


@pytest.fixture(scope="session")
def dynamodb_tables() -> Tables:
    """The project's tables on an engine of this worker's own."""
    from dynamo.test import tables_of_process

    return tables_of_process()


@pytest.fixture
def dynamodb(dynamodb_tables: Tables) -> Iterator[None]:
    """Give the test the project's tables, empty, on a local engine."""
    with dynamodb_tables.open():
        yield


@pytest.fixture
def max_requests() -> Callable[[int], AbstractContextManager[Any]]:
    """`with max_requests(3): …` fails if more requests are sent."""
    from dynamo.test import max_requests

    return max_requests


def _fault(name: str) -> Any:
    @pytest.fixture(name=name)
    def fixture() -> Any:
        from dynamo import test

        return getattr(test, name)

    fixture.__doc__ = f"`with {name}(…): …`; see `dynamo.test.{name}`."
    return fixture


lost_reply, throttled, conflict, unavailable, late = map(
    _fault, ("lost_reply", "throttled", "conflict", "unavailable", "late")
)
