from sequences.check import check_series as check_series
from sequences.counters import (
    Sequence as Sequence,
    anext_value as anext_value,
    delete_counter as delete_counter,
    last_value as last_value,
    next_value as next_value,
    next_values as next_values,
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
    SeriesStarted as SeriesStarted,
)
from sequences.series import (
    NumberedItem as NumberedItem,
    aissue as aissue,
    issue as issue,
    start_series as start_series,
)
from sequences.signals import numbers_given as numbers_given
