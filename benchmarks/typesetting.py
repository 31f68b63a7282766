"""How long does the PDF of an invoice take? `python -m benchmarks.typesetting [rounds]`"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

from benchmarks.arguments import asked
from benchmarks.peers import ROOT

ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "project.settings",
    "DJANGO_DEBUG": "on",
    "DJANGO_SECRET_KEY": "of-the-benchmark",
}


def main() -> None:
    """Print Markdown: a row for each invoice, with the medians of all rounds."""
    [rounds] = asked(__doc__, rounds=5)
    runs: dict[str, list[list[float]]] = {}
    for _round in range(rounds):
        for name in ("one-line", "electronic", "hundred-lines"):
            program = [sys.executable, "-m", "benchmarks.typesetting_worker", name]
            printed = subprocess.check_output(program, cwd=ROOT, env=os.environ | ENVIRONMENT)
            runs.setdefault(name, []).append(json.loads(printed))
    print("\n### The PDF of an invoice\n")
    print("| invoice | first ms | warm ms | KB |")
    print("|---|---:|---:|---:|")
    for name, found in runs.items():
        first, warm, kilobytes = map(statistics.median, zip(*found, strict=True))
        print(f"| {name} | {first:,.0f} | {warm:.1f} | {kilobytes:.0f} |")


if __name__ == "__main__":
    main()
