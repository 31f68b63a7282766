"""The fonts of the machine that a test has, and the table of the characters of all fonts.

`python -m tests.fonts` writes the table again from the fonts that are installed here.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = "INVOICES_FONT_FOLDER"


def with_fonts(environment: Mapping[str, str] | None) -> dict[str, str]:
    """The environment of a process that a test starts; None: that of the test."""
    folder = os.environ.get(FOLDER, os.devnull)
    return {FOLDER: folder} | dict(os.environ if environment is None else environment)


def ranges_of(file: Path) -> list[list[int]]:
    """The characters of a font: the first and the last code point of each range."""
    from fontTools.ttLib import TTFont

    ranges: list[list[int]] = []
    with TTFont(file, lazy=True) as font:
        for code_point in sorted(font.getBestCmap()):
            if ranges and ranges[-1][1] == code_point - 1:
                ranges[-1][1] = code_point
            else:
                ranges.append([code_point, code_point])
    return ranges


def write_table() -> None:
    """Write the ranges of the installed families; of others, the table keeps what it has."""
    from invoices.document import fonts

    table = json.loads(fonts._CHARACTERS.read_text(encoding="utf-8"))
    table |= {family.name: ranges_of(family.files()[0]) for family in fonts.installed()}
    families = (f"{json.dumps(name)}: {json.dumps(found)}" for name, found in table.items())
    fonts._CHARACTERS.write_text("{\n" + ",\n".join(families) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    from django.conf import settings

    settings.configure(
        INVOICES_FONT_FOLDER=os.environ.get(FOLDER, "/usr/share/fonts/truetype/noto")
    )
    write_table()
