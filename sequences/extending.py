"""Extension points of numbered items, for checks and statistics; see `dynamo.extending`."""


def __getattr__(name: str) -> object:
    from dynamo._internal.lazy import exported

    return exported(__name__, name)
