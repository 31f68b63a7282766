"""A handler for tests that freeze, restore and watch a function."""

import functools
import random
import sys
import threading
import time
import uuid
from typing import Any

from django.core import signing

from dynamo.client import credentials, sending
from dynamo.model.objects import new_version
from locks.exceptions import LeaseLost
from locks.lock import Lock
from project import serverless

_leases: list[Any] = []
_real_time = time.time


def _ahead(seconds: float) -> float:
    return _real_time() + seconds


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
        case "jump":
            # As after a pause in which the wall clock went on.
            time.time = functools.partial(_ahead, event["seconds"])
            return None
        case "credentials":
            return credentials.of_process().get_frozen_credentials().access_key
        case "threads":
            # Of each other thread, the innermost function that it is in.
            frames = sys._current_frames()
            others = [item for item in threading.enumerate() if item != threading.current_thread()]
            return {other.name: frames[other.ident or 0].f_code.co_name for other in others}
        case "sign":
            return signing.dumps("signed by a function")
        case "draw":
            return {
                "random": random.random(),
                "uuid": str(uuid.uuid4()),
                "version": new_version(),
                "same_client": sending.client() is _client,
                "has_pages": {"accounts.pages.account", "babel", "phonenumbers"}
                <= sys.modules.keys(),
            }
    return serverless.handler(event, context)


# Made and drawn before the snapshot is taken: a restored process must not use them.
random.seed(1)
_client = sending.client()
