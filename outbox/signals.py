"""Signals of workers, for metrics. Errors of receivers are only logged."""

from django.dispatch import Signal

#: A worker made an attempt. Argument: ran (`outbox.worker.Ran`).
task_ran = Signal()

#: A worker looked for tasks. Argument: seconds (float): the waiting time of the oldest task that it
#: found; 0 without one.
tasks_looked_for = Signal()
