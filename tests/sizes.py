"""The size of the product by package, in lines of code: `make size`.

Python, YAML and JavaScript count, without blank lines, comments and docstrings. Tests, benchmarks
and examples do not.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {"tests", "benchmarks", "examples", "docs"}

_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


def sizes() -> Counter[str]:
    """The lines of code of each package; files in the root are those of an empty name."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: Counter[str] = Counter()
    for name in listed.splitlines():
        path = ROOT / name
        package = name.rpartition("/")[0].partition("/")[0]
        if package not in LEFT_OUT and path.exists() and path.suffix in _COUNTED:
            found[package] += code_lines(path.suffix, path.read_text(encoding="utf-8"))
    return found


def code_lines(suffix: str, text: str) -> int:
    """How many lines of a file with this suffix are neither blank nor only comments."""
    return _COUNTED[suffix](text)


def _of_python(text: str) -> int:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        # Texts of attributes and of constants are docstrings as well.
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                lines.difference_update(range(first, last + 1))
    return len(lines)


def _of_others(text: str) -> int:
    lines = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).splitlines()
    return sum(1 for line in lines if not re.match(r"\s*(#|//|$)", line))


_COUNTED = {".py": _of_python, ".js": _of_others, ".yaml": _of_others, ".yml": _of_others}


if __name__ == "__main__":
    counted = sizes()
    for package, lines in sorted(counted.items()):
        print(f"{package or '(root)':12}{lines:7,}")
    print(f"{'total':12}{counted.total():7,}")
