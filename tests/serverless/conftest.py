"""A function of the site, on the suite's engine."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.production import PRODUCTION, checkout_in, collect_into
from tests.serverless.runtime import Function

SITE = "project.serverless.handler"

# AWS's runtime client is for Linux only.
collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's code with its static files collected, as the zip has it."""
    folder = checkout_in(tmp_path_factory.mktemp("function"))
    collect_into(folder / "staticfiles")
    return folder


@pytest.fixture(scope="module")
def environment(engine_url: str) -> dict[str, str]:
    """What the function's configuration sets, and the engine in the place of DynamoDB."""
    return PRODUCTION | {
        "AWS_ENDPOINT_URL_DYNAMODB": engine_url,
        "AWS_REGION": os.environ["AWS_REGION"],
        "ACCOUNTS_PREVENT_ENUMERATION": "off",
        "ACCOUNTS_EMAIL_CHANGE": "immediate",
        "EMAIL_URL": "dummymail://",
    }


@pytest.fixture
def new_function(
    engine: str, site_folder: Path, environment: dict[str, str], tmp_path: Path
) -> Callable[..., Function]:
    """Makes functions: by their handler, the name of their log, and changes of the environment.

    A change to None removes a variable.
    """

    def made(
        handler: str = SITE, log: str = "log", python: Path | None = None, **changes: str | None
    ) -> Function:
        changed = {name: value for name, value in (environment | changes).items() if value}
        return Function(
            changed, folder=site_folder, log=tmp_path / log, handler=handler, python=python
        )

    return made


@pytest.fixture(scope="module")
def _modules_function(
    request: pytest.FixtureRequest,
    site_folder: Path,
    environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Function]:
    log = tmp_path_factory.mktemp("function") / "log"
    handler = getattr(request.module, "HANDLER", SITE)
    with Function(environment, folder=site_folder, log=log, handler=handler) as function:
        yield function


@pytest.fixture
def function(engine: str, _modules_function: Function) -> Function:
    """A function with the `HANDLER` of the module, which its tests share, each as if it was new."""
    _modules_function.forget()
    return _modules_function
