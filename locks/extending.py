"""Extension points of locks: to hold leases, and for operators; see `dynamo.extending`."""


def __getattr__(name: str) -> object:
    from dynamo._internal.lazy import exported

    return exported(__name__, name)
