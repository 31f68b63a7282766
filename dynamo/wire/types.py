"""The types of values, items and requests in DynamoDB's JSON form.

Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/Welcome.html
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypedDict


class Typed(TypedDict, total=False):
    """A value with its type, such as `{"S": "…"}`. It has one member."""

    S: str
    N: str
    B: bytes
    BOOL: bool
    NULL: bool
    L: "list[Typed]"
    M: "dict[str, Typed]"
    SS: list[str]
    NS: list[str]
    BS: list[bytes]


#: An item, or a key: `{"pk": {"S": "…"}}`, by stored name.
Item: TypeAlias = dict[str, Typed]


class Address(TypedDict):
    """The parameters of a request that name an item."""

    TableName: str
    Key: Item


class Reason(TypedDict, total=False):
    """The reason why a request, or one action of a transaction, was refused."""

    Code: str
    Message: str | None
    Item: "dict[str, Typed]"


#: The description of a table, or a part of it.
Description: TypeAlias = Mapping[str, Any]


class Answer(TypedDict, total=False):
    """An answer of DynamoDB. Its members depend on the operation and the request."""

    Item: "dict[str, Typed]"
    Items: "list[dict[str, Typed]]"
    Attributes: "dict[str, Typed]"
    LastEvaluatedKey: "dict[str, Typed]"
    #: TransactGetItems returns a list with an item for each action, BatchGetItem the items by
    #: table.
    Responses: Any
    UnprocessedKeys: Mapping[str, object]
    UnprocessedItems: Mapping[str, object]
    ConsumedCapacity: Any
    #: Of operations on tables.
    Table: Description
    TimeToLiveDescription: Description
    ContinuousBackupsDescription: Description
    #: Of a refusal.
    Error: Reason
    CancellationReasons: list[Reason]


class Request(TypedDict, total=False):
    """The parameters of a request for one item, or of a Query or Scan."""

    TableName: str
    Key: "dict[str, Typed]"
    Item: "dict[str, Typed]"
    ConditionExpression: str
    UpdateExpression: str
    KeyConditionExpression: str
    FilterExpression: str
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: Mapping[str, Typed]
    ReturnValues: str
    ReturnValuesOnConditionCheckFailure: str
    ConsistentRead: bool
    IndexName: str
    Limit: int
    ScanIndexForward: bool
    ExclusiveStartKey: "dict[str, Typed]"
    Segment: int
    TotalSegments: int
