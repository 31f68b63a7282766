"""Counters, and series of items that are numbered 1, 2, 3 … without a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from sequences._internal.check import check_series as check_series
    from sequences._internal.counters import (
        Sequence as Sequence,
        anext_value as anext_value,
        delete_counter as delete_counter,
        last_value as last_value,
        next_value as next_value,
        next_values as next_values,
    )
    from sequences._internal.series import (
        NumberedItem as NumberedItem,
        aissue as aissue,
        issue as issue,
    )
    from sequences.exceptions import (
        CounterContended as CounterContended,
        DamagedSeries as DamagedSeries,
        ItemTooLarge as ItemTooLarge,
        NotACounter as NotACounter,
        OutOfOrder as OutOfOrder,
        RequestIdReused as RequestIdReused,
        ReservedName as ReservedName,
        SequenceError as SequenceError,
        SeriesError as SeriesError,
    )
    from sequences.signals import numbers_given as numbers_given

__all__, __getattr__ = lazily(
    __name__,
    {
        "sequences._internal.check": "check_series",
        "sequences._internal.counters": (
            "Sequence anext_value delete_counter last_value next_value next_values"
        ),
        "sequences._internal.series": "NumberedItem aissue issue",
        "sequences.exceptions": (
            "CounterContended DamagedSeries ItemTooLarge NotACounter OutOfOrder "
            "RequestIdReused ReservedName SequenceError SeriesError"
        ),
        "sequences.signals": "numbers_given",
    },
)
