"""The size of the product by package, in lines of code: `make size`.

Python, YAML and JavaScript count, without blank lines, comments and docstrings. Tests, benchmarks
and examples do not.
"""

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {"tests", "benchmarks", "examples", "docs"}


def sizes() -> Counter[str]:
    """The lines of code of each package; files in the root are those of an empty name."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: Counter[str] = Counter()
    for name in listed.splitlines():
        path = ROOT / name
        package = name.rpartition("/")[0].partition("/")[0]
        if (
            package not in LEFT_OUT
            and path.exists()
            and path.suffix in {".py", ".js", ".yaml", ".yml"}
        ):
            found[package] += code_lines(path.suffix, path.read_text(encoding="utf-8"))
    return found


def code_lines(suffix: str, text: str) -> int:
    """How many lines of a file with this suffix are neither blank nor only comments."""
    left_out: set[int] = set()
    if suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            # Texts of attributes and of constants are docstrings as well.
            match node:
                case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                    left_out.update(range(first, last + 1))
    else:
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    lines = (line for number, line in enumerate(text.splitlines(), 1) if number not in left_out)
    return sum(1 for line in lines if not re.match(r"\s*(#|//|$)", line))


if __name__ == "__main__":
    counted = sizes()
    for package, lines in sorted(counted.items()):
        print(f"{package or '(root)':12}{lines:7,}")
    print(f"{'total':12}{counted.total():7,}")
