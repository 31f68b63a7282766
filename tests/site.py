"""Fixtures of the whole suite that need the site."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from invoices.pages import downloads
from tests.fonts import with_fonts


@pytest.fixture(scope="session", autouse=True)
def _site_suited() -> Iterator[None]:
    """What all tests share."""
    start = subprocess.Popen.__init__

    def start_with_fonts(process: Any, *arguments: Any, env: Any = None, **named: Any) -> None:
        start(process, *arguments, env=with_fonts(env), **named)

    with pytest.MonkeyPatch.context() as patch:
        # As `fork_server`, also where a test sets the whole environment of a program.
        patch.setattr(subprocess.Popen, "__init__", start_with_fonts)
        yield


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """No open download."""
    yield
    downloads._gate.reset()
