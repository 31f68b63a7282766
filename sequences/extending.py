"""Extension points of numbered items, for checks and statistics; see `dynamo.extending`."""

from dynamo._internal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
