"""Locks: leases with heartbeats and fencing tokens."""


def __getattr__(name: str) -> object:
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)
