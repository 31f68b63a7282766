"""Counters, and series of items that are numbered 1, 2, 3 … without a gap."""


def __getattr__(name: str) -> object:
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)
