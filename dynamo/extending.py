"""Extension points: what packages and sites that go deeper than models may build on.

They may change with each minor release, and the changelog then says so (docs/stable.md).
"""

from dynamo._internal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
