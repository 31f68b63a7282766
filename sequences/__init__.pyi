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
