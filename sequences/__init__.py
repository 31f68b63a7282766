"""Counters, and series of items that are numbered 1, 2, 3 … without a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from sequences.check import (
        check_series as check_series,
    )
    from sequences.counters import (
        anext_value as anext_value,
    )
    from sequences.counters import (
        next_value as next_value,
    )
    from sequences.counters import (
        next_values as next_values,
    )
    from sequences.exceptions import (
        CounterContended as CounterContended,
    )
    from sequences.exceptions import (
        DamagedSeries as DamagedSeries,
    )
    from sequences.exceptions import (
        ItemTooLarge as ItemTooLarge,
    )
    from sequences.exceptions import (
        NotACounter as NotACounter,
    )
    from sequences.exceptions import (
        OutOfOrder as OutOfOrder,
    )
    from sequences.exceptions import (
        RequestIdReused as RequestIdReused,
    )
    from sequences.exceptions import (
        ReservedName as ReservedName,
    )
    from sequences.exceptions import (
        SequenceError as SequenceError,
    )
    from sequences.exceptions import (
        SeriesError as SeriesError,
    )
    from sequences.models import (
        NumberedItem as NumberedItem,
    )
    from sequences.series import (
        aissue as aissue,
    )
    from sequences.series import (
        issue as issue,
    )
    from sequences.signals import (
        numbers_given as numbers_given,
    )

__all__, __getattr__ = lazily(
    __name__,
    {
        "sequences.check": "check_series",
        "sequences.counters": "anext_value next_value next_values",
        "sequences.exceptions": (
            "CounterContended DamagedSeries ItemTooLarge NotACounter OutOfOrder "
            "RequestIdReused ReservedName SequenceError SeriesError"
        ),
        "sequences.models": "NumberedItem",
        "sequences.series": "aissue issue",
        "sequences.signals": "numbers_given",
    },
)
