"""Extension points of locks: to hold leases, and for operators; see `dynamo.extending`."""

from dynamo._internal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
