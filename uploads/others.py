"""Other processes whose claims we met: who of them is gone, and which of our files wait for them.

Each is looked at about once a second, however many files wait for it: its lock, and one of the
rows. A process that is gone is found out once, and all its rows may be taken over.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dynamo.exceptions import DynamoError, TableMissing, Unavailable
from locks.clock import now
from locks.holders import HolderWatch
from uploads.claims import Holder

#: The mean pause between two looks at one process.
POLL_SECONDS = 1.0

Job = TypeVar("Job")


@dataclass
class _Other(Generic[Job]):
    watch: HolderWatch
    waiting: deque[Job] = field(default_factory=deque)
    look_at: float = -math.inf
    is_tried: bool = False


@dataclass
class Looks(Generic[Job]):
    """What looking came to: jobs to try again, and those whose holder's lock says nothing."""

    worth_a_try: list[tuple[Holder, Job]] = field(default_factory=list)
    hopeless: list[tuple[Job, DynamoError]] = field(default_factory=list)


class Others(Generic[Job]):
    """Used by one thread; `gone` may be read by all."""

    def __init__(self) -> None:
        self._others: dict[Holder, _Other[Job]] = {}
        #: Who will write no more: rows that name them may be taken over.
        self.gone: set[Holder] = set()

    def __len__(self) -> int:
        return sum(len(other.waiting) for other in self._others.values())

    def put_aside(self, job: Job, holder: Holder) -> None:
        """Let the job wait for `holder`, behind others that do."""
        if holder not in self._others:
            self._others[holder] = _Other(HolderWatch(holder.lease, holder.fence))
        self._others[holder].waiting.append(job)

    @property
    def next_look_at(self) -> float:
        """When, on `locks.clock`, somebody is to be looked at next; infinity where nobody waits."""
        looks = (other.look_at for other in self._others.values() if not other.is_tried)
        return min(looks, default=math.inf)

    def look(self) -> Looks[Job]:
        """Look at everybody whose turn it is.

        Costs 1 request and 1 read unit for each; 1 write unit once, where its lock is removed.

        Raises:
            TableMissing: there are no locks.
        """
        looks: Looks[Job] = Looks()
        for holder, other in list(self._others.items()):
            if other.is_tried or other.look_at > now():
                continue
            try:
                is_gone = holder in self.gone or self._is_gone(other)
            except TableMissing:
                raise
            except DynamoError as error:
                # Damaged, most likely: no other holder's files are to suffer for it.
                del self._others[holder]
                looks.hopeless += [(job, error) for job in other.waiting]
                continue
            if is_gone:
                self.gone.add(holder)
                del self._others[holder]
                looks.worth_a_try += [(holder, job) for job in other.waiting]
            elif other.waiting:
                other.is_tried = True
                looks.worth_a_try.append((holder, other.waiting.popleft()))
            else:
                del self._others[holder]
        return looks

    def _is_gone(self, other: _Other[Job]) -> bool:
        pause = POLL_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311 - guards no secret
        other.look_at = now() + pause
        try:
            is_gone = other.watch.is_gone()
        except Unavailable:
            return False  # the job that is tried now says so
        other.look_at = min(other.look_at, other.watch.ends_at)
        return is_gone

    def settled(self, holder: Holder) -> Job | None:
        """The job that was tried for `holder` has an end; the next one, which may have one too."""
        other = self._others.get(holder)
        if other is None:
            return None
        if other.waiting:
            return other.waiting.popleft()
        del self._others[holder]
        return None

    def still_held(self, holder: Holder, job: Job) -> None:
        """The job that was tried for `holder` waits on, behind the others."""
        other = self._others.get(holder)
        if other is not None:
            other.is_tried = False
        self.put_aside(job, holder)
