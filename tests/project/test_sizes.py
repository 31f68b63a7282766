"""`make size`."""

import pytest

from tests.sizes import code_lines

PYTHON = '''
"""A module.

With a docstring.
"""

LIMIT = 3  # two
"""A constant."""


# A comment.
def text() -> str:
    """A function."""
    return LIMIT
'''
YAML = "# A comment.\nKey: value  # another\n\nList:\n  - 1\n"
JAVASCRIPT = "/* A comment\n of two lines. */\n// Another.\nlet a = 1;\n\nlet b = 2; // a third\n"


@pytest.mark.parametrize(
    ("suffix", "text", "lines"), [(".py", PYTHON, 3), (".yaml", YAML, 3), (".js", JAVASCRIPT, 2)]
)
def test_blank_lines_comments_and_docstrings_are_no_code(
    suffix: str, text: str, lines: int
) -> None:
    assert code_lines(suffix, text) == lines
