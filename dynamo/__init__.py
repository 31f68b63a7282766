"""Models with unique attributes, transactions, cache and sessions for Django on DynamoDB.

from dynamo import Model, TextAttribute, Unique, casefolded
"""


def __getattr__(name: str) -> object:
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)
