"""Names of a package that are imported on first use."""

import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.*)", re.MULTILINE)


def exported(package: str, name: str) -> object:
    """The value of `name` in `package`, which imports it in the stub beside its file.

    Type checkers read the same stub (`__init__.pyi`). So an app that needs only one part of the
    package loads only that, and a package can be imported before Django's settings are configured.

    Raises:
        AttributeError: the stub does not import it.
    """
    homes = _homes(package)
    if name == "__all__":
        return sorted(homes)
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    home = import_module(homes[name])
    return getattr(home, name, None) or import_module(f"{home.__name__}.{name}")


@cache
def _homes(package: str) -> dict[str, str]:
    """The module that each name comes from."""
    imports = _IMPORT.findall(Path(f"{sys.modules[package].__file__}i").read_text())
    return {name: home for home, names in imports for name in re.findall(r"(\w+) as", names)}
