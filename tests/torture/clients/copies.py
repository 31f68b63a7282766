"""Clients that change items from copies that may be outdated.

All of them write the same values, so only the version and the mark of a call tell whose write it
was.
"""

import random
import threading
import time
import uuid
from collections.abc import Callable
from copy import deepcopy

from django.template import Context, Engine

from dynamo import IntegerAttribute, Model, Stale, TextAttribute, Transaction, Unique
from tests.torture.clients.client import Client

#: After so many seconds all clients use other items.
ERA_SECONDS = 10.0
ITEMS = 2
#: How many threads want the same job.
RIVALS = 3


class Seats(Model):
    class Meta:
        table_name = "tests-torture-seats"

    sold = IntegerAttribute(default=0)


class Job(Model):
    """Its creation has a token, so that a late copy of the request does not bring it back."""

    class Meta:
        table_name = "tests-torture-jobs"

    name = TextAttribute()
    state = TextAttribute(default="ready")

    unique_name = Unique("name")


#: In a template, which must neither write nor change anything.
SHOWN = Engine().from_string("{{ it.save }} {{ it.delete }} {{ it.change }} {{ it.require }}")


def show(item: Model) -> None:
    """Show `item` on a page whose author named methods that write."""
    SHOWN.render(Context({"it": item}))


def shared_request(chance: random.Random) -> str:
    """The request id of an item that other clients use too."""
    era = int(time.monotonic() / ERA_SECONDS)
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{era} {chance.randrange(ITEMS)}"))


class CopyClient(Client):
    def step(self) -> None:
        """Sell a seat, or let several threads want one job."""
        if self.chance.random() < 0.8:
            self._sell()
        else:
            self._race(self.chance.choice([_claim, _take]))

    def _sell(self) -> None:
        seats = None
        with self.journal.call("open") as call:
            seats = Seats.create(request_id=shared_request(self.chance))
            call.ok()
        if seats is None:
            return
        show(seats)
        time.sleep(self.chance.choice([0, 0, 0.05]))
        what = self.chance.choice([_increment, _count, _increment_twice])
        joins = self.chance.random() < 0.3
        sold = 1 + (what is _increment_twice)
        with self.journal.call("sell", refusals=(Stale,), seats=seats.pk, sold=sold) as call:
            with Transaction() as write:
                what(seats, write)
                if joins:
                    Job.create(name=self.new_id(), write=write)
            call.ok()

    def _race(self, act: Callable[[Job], None]) -> None:
        job = None
        with self.journal.call("post") as call:
            job = Job.create(name=self.new_id())
            call.ok()
        if job is None:
            return
        show(job)

        def want(copy: Job) -> None:
            with self.journal.call(act.__name__.strip("_"), refusals=(Stale,), job=copy.pk) as call:
                act(copy)
                call.ok()

        copies = [deepcopy(job) for _ in range(RIVALS)]
        threads = [threading.Thread(target=want, args=(copy,), daemon=True) for copy in copies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _increment(seats: Seats, write: Transaction) -> None:
    seats.change(sold=seats.sold + 1, write=write)


def _count(seats: Seats, write: Transaction) -> None:
    seats.change(add={"sold": 1}, write=write)


def _increment_twice(seats: Seats, write: Transaction) -> None:
    seats.sold += 2
    seats.save(write=write)


def _claim(job: Job) -> None:
    job.change(state="claimed")


def _take(job: Job) -> None:
    job.delete(missing_ok=False)
