"""Signals of counters and series, for metrics. Errors of receivers are only logged."""

from django.dispatch import Signal

#: Sent after a request that issued numbers. `sender` is the numbered model, or None for a counter.
#: Arguments: kind (str): "counter" or "series"; callers (int): how many shared the request; numbers
#: (int): how many it gave.
numbers_given = Signal()
