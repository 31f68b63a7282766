"""Torture can be started; a short run, started like `make torture`, finds nothing."""

import subprocess
import sys

import pytest

from tests.commands import ROOT


@pytest.mark.slow
def test_a_short_torture_finds_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.torture", "--seconds", "30"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.endswith(": 0 findings\n")
