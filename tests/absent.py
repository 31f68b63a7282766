"""Skips tests that import packages which a project does not have."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder

import pytest


class Absent(MetaPathFinder):
    def __init__(self, packages: set[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> None:
        if name.partition(".")[0] in self.packages:
            pytest.skip(f"needs {name}", allow_module_level=True)


def skip_tests_of(*packages: str) -> None:
    sys.meta_path.insert(0, Absent({*packages}))
