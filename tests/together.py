"""Several act on accounts at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from accounts.exceptions import AccountError
from dynamo.exceptions import Refused


def together(*actions: Callable[[], object]) -> list[Any]:
    """Do all at once, each in a thread; what each returned, or the error that it raised."""
    barrier = threading.Barrier(len(actions))
    results: list[Any] = [None] * len(actions)

    def run(place: int, action: Callable[[], object]) -> None:
        barrier.wait()
        try:
            results[place] = action()
        except (AccountError, Refused) as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
