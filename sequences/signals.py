"""Signals of counters and series, for metrics. Errors of receivers are only logged."""

from django.dispatch import Signal

#: Sent after a request that issued numbers. `sender` is the numbered model, or None for a counter.
#: Arguments: kind (str): "counter" or "series"; callers (int): the number of callers that shared
#: the request; numbers (int): the count of numbers.
numbers_given = Signal()
