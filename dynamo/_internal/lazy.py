"""Names of a package that are imported on first use."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.*)", re.MULTILINE)


def lazily(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` of `package`: what the stub beside its `file` imports.

    Type checkers read the same stub (`__init__.pyi`). So an app that needs only one part of the
    package loads only that, and a package can be imported before Django's settings are configured.
    """
    with open(f"{file}i") as stub:  # noqa: PTH123 - pathlib takes longer to load than all of this
        imports = _IMPORT.findall(stub.read())
    home_of = {name: home for home, names in imports for name in re.findall(r"(\w+) as", names)}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(home_of[name])
        return getattr(home, name, None) or import_module(f"{home.__name__}.{name}")

    return sorted(home_of), get
