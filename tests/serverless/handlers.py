"""Handlers of functions that tests freeze, restore and watch, beside the site's own."""

from __future__ import annotations

import random
import sys
import uuid
from typing import Any

from dynamo.client import sending
from dynamo.models import new_version
from locks.exceptions import LeaseLost
from locks.lock import Lock
from project import serverless
from sequences.counters import next_value

_leases: list[Any] = []


def handler(event: dict[str, Any], context: Any) -> Any:
    """Do what `event["do"]` says, or answer an HTTP request."""
    match event.get("do"):
        case "hold":
            _leases.append(Lock("of a function", lease_seconds=2.0).acquire())
            return _leases[0].fence
        case "check":
            try:
                _leases[0].check()
            except LeaseLost:
                return "lost"
            return "held"
        case "next":
            return next_value("of functions")
        case "draw":
            return {
                "random": random.random(),
                "uuid": str(uuid.uuid4()),
                "version": new_version(),
                "same_client": sending.client() is _client,
                "has_pages": {"accounts.views", "babel", "phonenumbers"} <= sys.modules.keys(),
            }
    return serverless.handler(event, context)


# Made and drawn before the snapshot is taken: a restored process must not use them.
random.seed(1)
_client = sending.client()
