"""What a benchmark is told on its command line: some whole numbers, in an order."""

from __future__ import annotations

import argparse
import sys


def asked(about: str | None, **defaults: int) -> list[int]:
    """The numbers above zero that were given, in the order of `defaults`, which fill the rest.

    `about` is the benchmark's docstring, shown by `--help`. Anything else ends with its usage and
    exit 2, before a server is started.
    """
    module = getattr(sys.modules["__main__"], "__spec__", None)
    parser = argparse.ArgumentParser(
        prog=f"python -m {module.name}" if module else None,
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, default in defaults.items():
        parser.add_argument(name, nargs="?", type=count, default=default)
    return list(vars(parser.parse_args()).values())


def count(text: str) -> int:
    """A whole number above zero; argparse calls it by this name when it refuses one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"not above zero: {text}")
    return number
