"""Django's cache on the table `cache`.

`backend` is what CACHES names; `items` says what is stored and when it ends; `values` how a value
is stored and read.
"""

from dynamo.cache.backend import DynamoCache

__all__ = ["DynamoCache"]
