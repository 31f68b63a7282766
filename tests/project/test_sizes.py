"""`make size`."""

from __future__ import annotations

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

    return """
# not a comment
"""
'''
YAML = """
# A comment.
Key: value  # another

List:
  - 1
"""
JAVASCRIPT = """
/* A comment
   of two lines. */
// Another.
let a = 1;

let b = 2; // a third
"""


@pytest.mark.parametrize(
    ("suffix", "text", "lines"), [(".py", PYTHON, 5), (".yaml", YAML, 3), (".js", JAVASCRIPT, 2)]
)
def test_blank_lines_comments_and_docstrings_are_no_code(
    suffix: str, text: str, lines: int
) -> None:
    assert code_lines(suffix, text) == lines
