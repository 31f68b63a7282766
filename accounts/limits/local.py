"""Rate limits that live in the memory of one process, for requests that must not ask DynamoDB."""

import threading
import time
from collections import Counter

#: Subjects that are counted in one window; more are refused, so that the memory is bounded.
MOST_SUBJECTS = 10_000


class LocalLimit:
    """At most `times` requests of each subject in a window of `seconds`, in each process."""

    def __init__(self, times: int, seconds: int) -> None:
        self.times, self.seconds = times, seconds
        self._counts: Counter[str] = Counter()
        self._ends = 0.0
        self._lock = threading.Lock()

    def take(self, subject: str) -> bool:
        """Count a request of `subject`. False if it is one too many."""
        with self._lock:
            now = time.monotonic()
            if now >= self._ends:
                self._counts.clear()
                self._ends = now + self.seconds
            if subject not in self._counts and len(self._counts) >= MOST_SUBJECTS:
                return False
            self._counts[subject] += 1
            return self._counts[subject] <= self.times
