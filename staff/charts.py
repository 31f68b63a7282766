"""Bars for a chart that the server draws: only numbers, in the units of its `viewBox`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 120
#: Of the place that each bar has, so much is left between it and the next.
GAP = 0.25
#: A value above 0 is seen, however small it is beside the largest.
LEAST_HEIGHT = 2


@dataclass(frozen=True)
class Bar:
    """One bar; `y` is its upper edge, counted from the top."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: int


@dataclass(frozen=True)
class Chart:
    """`top` is the value of a bar as high as the chart, `total` the sum of all."""

    bars: tuple[Bar, ...]
    top: int
    total: int
    width: int = WIDTH
    height: int = HEIGHT


def bars(values: Sequence[tuple[str, int]]) -> Chart:
    """The chart of labelled values from 0 on, from left to right."""
    top = max((value for _label, value in values), default=0)
    step = WIDTH / max(1, len(values))
    drawn = []
    for place, (label, value) in enumerate(values):
        height = max(LEAST_HEIGHT, HEIGHT * value / top) if value else 0
        drawn.append(
            Bar(
                x=round(step * (place + GAP / 2), 2),
                y=round(HEIGHT - height, 2),
                width=round(step * (1 - GAP), 2),
                height=round(height, 2),
                label=label,
                value=value,
            )
        )
    return Chart(tuple(drawn), top, sum(value for _label, value in values))
