"""Django's cache on the table `cache`.

CACHES names the class in `backend`; `items` describes the stored items and when they expire;
`values` converts values to their stored form and back.
"""

from dynamo.cache.backend import DynamoCache

__all__ = ["DynamoCache"]
