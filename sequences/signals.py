"""What other apps can listen to, for metrics."""

from django.dispatch import Signal

#: One request gave numbers. `kind`: "counter" or "series"; `callers`: how many shared it;
#: `numbers`: how many it gave. `sender` is the numbered model, or None for a counter.
numbers_given = Signal()
