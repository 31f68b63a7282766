"""Extension points of numbered items, for checks and statistics; see `dynamo.extending`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from sequences._internal.seriesreport import SeriesReport as SeriesReport, last_of as last_of
    from sequences.models import (
        REQUEST_PREFIX as REQUEST_PREFIX,
        Counter as Counter,
        is_counter_of_series as is_counter_of_series,
    )

__all__, __getattr__ = lazily(
    __name__,
    {
        "sequences._internal.seriesreport": "SeriesReport last_of",
        "sequences.models": "Counter REQUEST_PREFIX is_counter_of_series",
    },
)
