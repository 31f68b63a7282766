"""Fixtures of the whole suite that need the site."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from invoices.output import helper
from invoices.pages import downloads
from tests import engines
from tests.conftest import PATIENCE_SECONDS
from tests.fonts import with_fonts


@pytest.fixture(scope="session", autouse=True)
def _site_suited() -> Iterator[None]:
    """What all tests share."""
    start, start_helper = subprocess.Popen.__init__, helper._Helper._start

    def start_with_fonts(process: Any, *arguments: Any, env: Any = None, **named: Any) -> None:
        start(process, *arguments, env=with_fonts(env), **named)

    def start_noted_helper(started: helper._Helper) -> subprocess.Popen[bytes]:
        process = start_helper(started)
        engines.processes.add(process)
        return process

    with pytest.MonkeyPatch.context() as patch:
        # As `fork_server`, also where a test sets the whole environment of a program.
        patch.setattr(subprocess.Popen, "__init__", start_with_fonts)
        # It lives as long as the session, in which all tables would count as written.
        patch.setattr(helper._Helper, "_start", start_noted_helper)
        # The helper is nicer than all other processes of the machine.
        patch.setattr(helper, "SECONDS", 10 * PATIENCE_SECONDS)
        # As on a server, though tests import the module of AWS Lambda.
        patch.setattr(helper, "_is_here", False)
        yield


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """Neither an open download nor the module of AWS Lambda."""
    yield
    downloads._gate.reset()
    helper._is_here = False
