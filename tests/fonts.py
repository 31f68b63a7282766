"""The fonts of the machine that a test has, in all its processes."""

import os
from collections.abc import Mapping

FOLDER = "INVOICES_FONT_FOLDER"


def with_fonts(environment: Mapping[str, str] | None) -> dict[str, str]:
    """The environment of a process that a test starts; None: that of the test."""
    folder = os.environ.get(FOLDER, os.devnull)
    return {FOLDER: folder} | dict(os.environ if environment is None else environment)
