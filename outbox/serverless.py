"""Tasks on AWS Lambda: `run_tasks` is a function's handler, for the table's stream and a schedule.

The stream invokes it for new tasks, the schedule for those that had to wait. Both run what is due,
so an event that is lost, late or doubled changes nothing.
"""

import threading
from collections import Counter
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from outbox.worker import Ran, Worker

#: How much of the function's time is left when running tasks have been given back.
SECONDS_LEFT = 5.0

#: How long a function that is about to end waits for tasks that run.
GRACE_SECONDS = 10.0


def run_tasks(_event: object, context: Any) -> dict[str, int]:
    """Run the tasks that are due, until the function's time is nearly over.

    Returns how many attempts there were, by their outcome. A task that is given back after more
    than half of that time has used up an attempt; otherwise, a slow one would be repeated for ever.
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
