"""Tasks on AWS Lambda: `run_tasks` is a function's handler, for the table's stream and a schedule.

The stream invokes it for new tasks, the schedule for tasks that had to wait. Both run all tasks
that are due, so a lost, late or repeated event does no harm.
"""

import threading
from collections import Counter
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from outbox.worker import Ran, Worker

#: When running tasks have been given back, this much of the function's time is left.
SECONDS_LEFT = 5.0

#: A function that is about to end waits for running tasks for this time.
GRACE_SECONDS = 10.0


def run_tasks(_event: object, context: Any) -> dict[str, int]:
    """Run the tasks that are due, until the function's time is nearly over.

    Returns the numbers of attempts by their outcome. If a task is given back after more than half
    of that time, this counts as a failed attempt. Otherwise, a slow task would be repeated forever.
    Costs 1 read unit per shard, and 2 write units for a lease if it runs tasks.

    Raises:
        ImproperlyConfigured: the time-out of the function is too short to run tasks.
    """
    ran: list[Ran] = []
    stop = threading.Event()
    seconds = context.get_remaining_time_in_millis() / 1000 - SECONDS_LEFT - GRACE_SECONDS
    if seconds <= 0:
        needed = SECONDS_LEFT + GRACE_SECONDS
        raise ImproperlyConfigured(f"The time-out of the function must exceed {needed:g} seconds.")
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    try:
        Worker(
            on_ran=ran.append, stop=stop, grace_seconds=GRACE_SECONDS, counted_seconds=seconds / 2
        ).run(once=True)
    finally:
        timer.cancel()
    return dict(Counter(attempt.outcome for attempt in ran))
