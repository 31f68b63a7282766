"""A lock's item as it is stored, and what befalls it in tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from dynamo.client import send
from dynamo.models import Item
from locks import heartbeats
from locks.leases import Lease
from locks.lock import Lock


def stored(name: str) -> Item:
    """The item on the wire; empty where there is none."""
    item: Item = send("GetItem", {"TableName": "locks", "Key": {"key": {"S": name}}}).get(
        "Item", {}
    )
    return item


def put(name: str, **attributes: dict[str, Any]) -> None:
    """Store an item whole, as another client might."""
    send("PutItem", {"TableName": "locks", "Item": {"key": {"S": name}, **attributes}})


def taken(name: str, *, lease_seconds: float = 20.0, **settings: Any) -> Lease:
    """A lease on a lock that is free."""
    return Lock(name, lease_seconds=lease_seconds, **settings).acquire()


def abandoned(name: str, *, lease_seconds: float = 0.3, **settings: Any) -> Lease:
    """A lease that nobody renews, as after a crash."""
    lease = taken(name, lease_seconds=lease_seconds, **settings)
    heartbeats.drop(lease)
    return lease


def beating() -> list[threading.Thread]:
    """The threads that renew: one or none."""
    return [each for each in threading.enumerate() if each.name == "lock heartbeats"]


def wait_until(condition: Callable[[], Any], seconds: float = 30) -> None:
    """Come back when it is true; so late only on a machine that is dead."""
    ends_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.01)
