"""Locks for tests: reading and storing their items, and leases with and without renewals."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from dynamo.runtime.clock import now
from locks import Lease, LeaseLost, Lock, leases
from locks.models import LockItem
from tests.items import Item, put_item, stored_item
from tests.requests import told


def stored(name: str) -> Item:
    """The item as on the wire; empty if there is none."""
    return stored_item(LockItem.table(), key=name)


def put(name: str, **attributes: dict[str, Any]) -> None:
    """Put an item, as another client might."""
    put_item(LockItem.table(), **{"key": name, **attributes})


def taken(name: str, *, lease_seconds: float = 600, **settings: Any) -> Lease:
    """Acquire a lock; its default lease is longer than any test, so it is not renewed or lost."""
    return Lock(name, lease_seconds=lease_seconds, **settings).acquire()


def abandoned(name: str, *, lease_seconds: float = 0.3, **settings: Any) -> Lease:
    """Acquire a lock whose lease is never renewed, as after a crash of its holder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "keep", lambda lease: None)
        return taken(name, lease_seconds=lease_seconds, **settings)


def unaware(lease: Lease) -> Lease:
    """Let the holder believe that the lease lasts, as if it was stopped after its check."""
    lease.lease_seconds, lease._sent_at = 600, now()
    return lease


@contextmanager
def renewed_at_each_look(lease: Lease) -> Iterator[None]:
    """Renew the lease whenever this process has seen its lock, before anybody acts on what it saw.

    So its holder lives, however short the stored lease is and however long the machine stalls.
    """
    unaware(lease)
    ours = threading.local()

    def renew(operation: str, request: dict[str, Any], **_signal: Any) -> None:
        is_look = operation in {"GetItem", "UpdateItem"} and request["TableName"] == "locks"
        if is_look and not getattr(ours, "is_renewal", False):
            ours.is_renewal = True
            # It may be released at this moment.
            with suppress(LeaseLost):
                lease.renew()
            ours.is_renewal = False

    with told(renew):
        yield


def beating() -> list[threading.Thread]:
    """The thread that watches leases, if it runs."""
    return [item for item in threading.enumerate() if item.name == "lock heartbeats"]
