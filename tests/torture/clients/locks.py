"""Clients that take locks and increment the number that each protects."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

from locks._internal.leases import Lease
from locks._internal.lock import Lock
from locks.exceptions import LeaseLost, LockTaken
from tests.torture.history import Journal, Running
from tests.torture.resource import Resource, StaleFence

LOCKS = 3
LEASE_SECONDS = 1.5


class LockClient:
    def __init__(self, journal: Journal, chance: random.Random, resources: Path) -> None:
        self._journal = journal
        self._chance = chance
        self._resources = resources
        self._pause = threading.Event()

    def step(self) -> None:
        """Hold a lock, mostly for less than its lease and sometimes for longer."""
        name = f"torture-{self._chance.randrange(LOCKS)}"
        lock = Lock(name, lease_seconds=LEASE_SECONDS, wait_seconds=3, poll_seconds=0.15)
        refusals = (LockTaken, LeaseLost, StaleFence)
        with self._journal.call("hold", refusals=refusals, lock=name) as call:
            with lock as lease:
                self._work(lease, call)
            call.ok()

    def _work(self, lease: Lease, call: Running) -> None:
        call.note(fence=lease.fence)
        resource = Resource(self._resources / lease.name)
        for _round in range(self._chance.choice([1, 1, 1, 2, 8])):
            number = resource.read(lease.fence) + 1
            self._pause.wait(self._chance.uniform(0, 0.3))
            at = time.monotonic()
            lease.check()
            call.note(at=at, looked=True)
            resource.write(lease.fence, number)
            call.note(wrote=[lease.fence, number])
