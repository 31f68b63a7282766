"""Torture can be started; a short run, started like `make torture`, finds nothing."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

from tests import torture
from tests.commands import ROOT


def test_every_module_of_torture_can_be_imported() -> None:
    modules = list(pkgutil.walk_packages(torture.__path__, "tests.torture."))

    for module in modules:
        importlib.import_module(module.name)

    assert {"tests.torture.report", "tests.torture.__main__"} <= {each.name for each in modules}


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
