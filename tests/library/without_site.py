"""Skips the tests of the library that import the site or an extra, which are not here."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder

import pytest

SITE = {"accounts", "invoices", "staff", "uploads", "web", "opentelemetry", "rest_framework"}


class NoSite(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> None:
        if name.partition(".")[0] in SITE:
            pytest.skip(f"needs {name}", allow_module_level=True)


sys.meta_path.insert(0, NoSite())
