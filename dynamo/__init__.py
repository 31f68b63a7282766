"""Models with unique attributes, transactions, cache and sessions for Django on DynamoDB.

from dynamo import Model, TextAttribute, Unique, casefolded
"""

from dynamo._internal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
