"""Names of a package that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` of `package`; `homes` has, by module, its names or submodules.

    So an app that needs only one part of the package loads only that, and a package can be imported
    before Django's settings are configured.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(home_of[name])
        return getattr(home, name, None) or import_module(f"{home.__name__}.{name}")

    return sorted(home_of), get
