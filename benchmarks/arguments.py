"""The command line of a benchmark: whole numbers in a fixed order."""

from __future__ import annotations

import argparse
import sys


def asked(about: str | None, **defaults: int) -> list[int]:
    """The given numbers, in the order of `defaults`, which provide the others.

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
    """Parse a whole number above zero. argparse shows this function's name in its error."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"not above zero: {text}")
    return number
