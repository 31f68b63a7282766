"""Signals of locks, for metrics. Errors of receivers are only logged."""

from django.dispatch import Signal

#: A caller got a lock or gave up. `sender` is the `Lock`'s class. Arguments: name (str): the
#: lock's; outcome (str): "acquired" or "taken"; seconds (float): how long the caller waited.
lock_awaited = Signal()

#: A lease was lost before it was released. `sender` is the `Lease`'s class. Arguments: name (str):
#: the lock's; reason (str): "late" if it was not renewed in time, or "taken" if it was broken or
#: another process has it.
lease_lost = Signal()
