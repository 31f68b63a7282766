"""Clients that store an order with the task that charges it, and workers that are killed."""

import random
import threading

from dynamo import IntegerAttribute, Model, Transaction
from outbox import Retry, TaskContext, task
from outbox.worker import Worker
from tests.torture.clients.client import Client

#: A worker that is killed or frozen has its tasks taken over soon.
LEASE_SECONDS = 1.5

#: What a task returns whose order does not exist.
ORPHAN = "orphan"


class Order(Model):
    class Meta:
        table_name = "tests-torture-orders"

    charged = IntegerAttribute(default=0)


@task(takes_context=True, retry=Retry(attempts=100_000, delay=0.2, longest=1.0))
def charge(context: TaskContext, pk: str) -> str | None:
    """Charge an order once."""
    order = Order.get_or_none(pk)
    if order is None:
        return ORPHAN
    if random.random() < 0.1:
        raise RuntimeError("a task that fails now and then")
    with Transaction() as write:
        order.change(add={"charged": 1}, write=write)
        context.finish(write=write)
    return None


class TaskClient(Client):
    def step(self) -> None:
        """Store an order with its task."""
        pk = self.new_id()
        with self.journal.call("order", order=pk) as call:
            with Transaction() as write:
                Order.create(pk=pk, write=write)
                charge.using(write=write).enqueue(pk)
            call.ok()


def run_tasks(stop: threading.Event) -> None:
    """The worker of a process."""
    Worker(threads=2, lease_seconds=LEASE_SECONDS, grace_seconds=5, stop=stop).run()
