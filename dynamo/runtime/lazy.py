"""Names of a package that are imported on first use."""

import ast
import sys
from functools import cache
from importlib import import_module
from pathlib import Path


def exported(package: str, name: str) -> object:
    """The value of `name` in `package`, which imports it in the stub next to its file.

    Type checkers read the same stub (`__init__.pyi`), so the names are listed once. With plain
    imports each package would load botocore and PynamoDB for its first error class, Django could
    not import `dynamo.auth` and `dynamo.admin` while it reads INSTALLED_APPS, and pytest would load
    all of `dynamo` with its plugin, before it measures coverage. The packages of SPEC 1
    (https://scientific-python.org/specs/spec-0001/) do the same by lazy_loader.

    Raises:
        AttributeError: the stub does not import it.
    """
    homes = _homes(package)
    if name == "__all__":
        return sorted(homes)
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)


@cache
def _homes(package: str) -> dict[str, str]:
    """The module that each name comes from."""
    stub = ast.parse(Path(f"{sys.modules[package].__file__}i").read_text(encoding="utf-8"))
    return {
        alias.name: str(statement.module)
        for statement in stub.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
