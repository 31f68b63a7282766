"""Clients that take locks and increment the number that each protects."""

import time

from locks import Lease, LeaseLost, Lock, LockTaken
from tests.torture.clients.client import Client
from tests.torture.history import Running
from tests.torture.resource import Resource, StaleFence

LOCKS = 3
LEASE_SECONDS = 1.5


class LockClient(Client):
    def step(self) -> None:
        """Hold a lock, mostly for less than its lease and sometimes for longer."""
        name = f"torture-{self.chance.randrange(LOCKS)}"
        lock = Lock(name, lease_seconds=LEASE_SECONDS, wait_seconds=3, poll_seconds=0.15)
        refusals = (LockTaken, LeaseLost, StaleFence)
        with self.journal.call("hold", refusals=refusals, lock=name) as call:
            with lock as lease:
                self._work(lease, call)
            call.ok()

    def _work(self, lease: Lease, call: Running) -> None:
        call.note(fence=lease.fence)
        resource = Resource(self.plan.folder / "resources" / lease.name)
        for _round in range(self.chance.choice([1, 1, 1, 2, 8])):
            number = resource.read(lease.fence) + 1
            time.sleep(self.chance.uniform(0, 0.3))
            at = time.monotonic()
            lease.check()
            call.note(at=at, looked=True)
            resource.write(lease.fence, number)
            call.note(wrote=[lease.fence, number])
