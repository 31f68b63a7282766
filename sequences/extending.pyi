from sequences._internal.check import SeriesReport as SeriesReport, last_of as last_of
from sequences.models import (
    REQUEST_PREFIX as REQUEST_PREFIX,
    Counter as Counter,
    is_counter_of_series as is_counter_of_series,
)
