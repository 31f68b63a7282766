"""Extension points: what packages and sites that go deeper than models may build on.

They may change with each minor release, and the changelog then says so (docs/stable.md).
"""


def __getattr__(name: str) -> object:
    from dynamo._internal.lazy import exported

    return exported(__name__, name)
