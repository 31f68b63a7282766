"""Draws the 99 % latencies of `benchmarks.invoices` as an SVG: `python -m benchmarks.chart`

The data are those of a run, or those of its table in benchmarks/README.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
CHART = HERE / "invoices.svg"

Latencies = Mapping[tuple[str, str], float]
"""Milliseconds by load (`1 × 8`) and contender."""

WIDTH, LEFT, RIGHT = 760, 250, 680
ROW, GROUP, TOP = 22, 34, 64
#: The ends of the logarithmic scale, in powers of ten: 1 ms and 10 s.
FIRST, LAST = 0, 4

_STYLE = """\
  text { font: 13px sans-serif; fill: #3d4650; } .group { font-weight: bold; fill: #1f2328; }
  .title { font: bold 15px sans-serif; fill: #1f2328; } .end { text-anchor: end; }
  .middle { text-anchor: middle; } .ground { fill: #fbfaf7; } .line { stroke: #c9cfd6; }
  .bar { fill: #9aa4b0; } .ours { fill: #2f7d54; }
  @media (prefers-color-scheme: dark) {
    text { fill: #b3bcc6; } .group, .title { fill: #e6e9ed; } .ground { fill: #15181c; }
    .line { stroke: #4a525c; } .bar { fill: #7b8794; } .ours { fill: #5fb98a; }
  }"""


def latencies_of(page: str) -> Latencies:
    """Those in the table of invoices in benchmarks/README.md."""
    table = page.split("\n## Gapless invoices on one series\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (\d+ × \d+) \| (.+?) \|.*?\|.*?\| ([\d.]+) \|", table, re.MULTILINE)
    return {(load, contender): float(ms) for load, contender, ms in cells}


def drawn(latencies: Latencies) -> str:
    """The SVG."""
    loads = list(dict.fromkeys(load for load, _contender in latencies))
    height = TOP + len(loads) * GROUP + len(latencies) * ROW + 34
    parts = [f'<text class="title" x="20" y="30">{_TITLE}</text>']
    for power in range(FIRST, LAST + 1):
        x = _x(10**power)
        parts.append(f'<path class="line" d="M{x:.0f} {TOP - 8}V{height - 34}"/>')
        label = f"{10**power:,} ms" if power < 3 else f"{10 ** (power - 3)} s"
        parts.append(f'<text class="middle" x="{x:.0f}" y="{height - 14}">{label}</text>')
    y = TOP
    for load in loads:
        y += GROUP
        parts.append(f'<text class="group" x="20" y="{y - 10}">{_spelled(load)}</text>')
        for (key, contender), ms in latencies.items():
            if key != load:
                continue
            kind = "bar ours" if contender == "ours" else "bar"
            end = _x(ms)
            parts += [
                f'<text class="end" x="{LEFT - 10}" y="{y + 12}">{contender}</text>',
                f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="15"/>',
                f'<text x="{end + 6:.1f}" y="{y + 12}">{_rounded(ms)} ms</text>',
            ]
            y += ROW
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{_TITLE}</title>",
            f"<style>\n{_STYLE}\n</style>",
            f'<rect class="ground" width="{WIDTH}" height="{height}" rx="10"/>',
            *parts,
            "</svg>\n",
        ]
    )


_TITLE = "99 % of the gapless numbers take at most (local engine, logarithmic scale)"


def _x(ms: float) -> float:
    power = min(max(math.log10(ms), FIRST), LAST)
    return LEFT + (RIGHT - LEFT) * (power - FIRST) / (LAST - FIRST)


def _rounded(ms: float) -> str:
    return f"{ms:.1f}" if ms < 100 else f"{ms:,.0f}"


def _spelled(load: str) -> str:
    processes, threads = load.split(" × ")
    if processes != "1":
        return f"{processes} processes, {threads} threads each"
    return "1 thread" if threads == "1" else f"{threads} threads"


if __name__ == "__main__":
    CHART.write_text(drawn(latencies_of((HERE / "README.md").read_text("utf-8"))), "utf-8")
