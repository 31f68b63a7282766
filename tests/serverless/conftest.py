"""A function of the site, on the suite's engine."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.production import PRODUCTION, checkout_in, collect_into
from tests.serverless.runtime import Function

# AWS's runtime client is for Linux only.
collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's code with its static files collected, as the zip has it."""
    folder = checkout_in(tmp_path_factory.mktemp("function"))
    collect_into(folder / "staticfiles")
    return folder


@pytest.fixture
def environment(engine: str) -> dict[str, str]:
    """What the function's configuration sets, and the engine in the place of DynamoDB."""
    return PRODUCTION | {
        "AWS_ENDPOINT_URL_DYNAMODB": engine,
        "AWS_REGION": os.environ["AWS_REGION"],
        "ACCOUNTS_PREVENT_ENUMERATION": "off",
        "ACCOUNTS_EMAIL_CHANGE": "immediate",
        "EMAIL_URL": "dummymail://",
    }


@pytest.fixture
def new_function(
    site_folder: Path, environment: dict[str, str], tmp_path: Path
) -> Callable[..., Function]:
    """Makes functions: by their handler, the name of their log, and changes of the environment."""

    def made(
        handler: str = "project.serverless.handler",
        log: str = "log",
        python: Path | None = None,
        **changes: str,
    ) -> Function:
        file = tmp_path / log
        return Function(
            environment | changes, folder=site_folder, log=file, handler=handler, python=python
        )

    return made


@pytest.fixture
def function(new_function: Callable[..., Function]) -> Iterator[Function]:
    with new_function() as function:
        yield function
