"""Models with unique attributes, transactions, cache and sessions for Django on DynamoDB.

from dynamo import Model, TextAttribute, Unique, casefolded
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from dynamo.attributes import (
        BooleanAttribute as BooleanAttribute,
    )
    from dynamo.attributes import (
        ChoiceAttribute as ChoiceAttribute,
    )
    from dynamo.attributes import (
        DateAttribute as DateAttribute,
    )
    from dynamo.attributes import (
        DateTimeAttribute as DateTimeAttribute,
    )
    from dynamo.attributes import (
        DecimalAttribute as DecimalAttribute,
    )
    from dynamo.attributes import (
        IntegerAttribute as IntegerAttribute,
    )
    from dynamo.attributes import (
        JSONAttribute as JSONAttribute,
    )
    from dynamo.attributes import (
        TextAttribute as TextAttribute,
    )
    from dynamo.exceptions import (
        AlreadyDone as AlreadyDone,
    )
    from dynamo.exceptions import (
        AlreadyExists as AlreadyExists,
    )
    from dynamo.exceptions import (
        BadCursor as BadCursor,
    )
    from dynamo.exceptions import (
        Busy as Busy,
    )
    from dynamo.exceptions import (
        ConditionFailed as ConditionFailed,
    )
    from dynamo.exceptions import (
        DamagedItem as DamagedItem,
    )
    from dynamo.exceptions import (
        DoesNotExist as DoesNotExist,
    )
    from dynamo.exceptions import (
        DynamoError as DynamoError,
    )
    from dynamo.exceptions import (
        Refused as Refused,
    )
    from dynamo.exceptions import (
        Rejected as Rejected,
    )
    from dynamo.exceptions import (
        RequestIdReused as RequestIdReused,
    )
    from dynamo.exceptions import (
        Stale as Stale,
    )
    from dynamo.exceptions import (
        TableMissing as TableMissing,
    )
    from dynamo.exceptions import (
        Taken as Taken,
    )
    from dynamo.exceptions import (
        Unavailable as Unavailable,
    )
    from dynamo.models import (
        Model as Model,
    )
    from dynamo.pages import (
        GlobalSecondaryIndex as GlobalSecondaryIndex,
    )
    from dynamo.pages import (
        Page as Page,
    )
    from dynamo.signals import (
        request_sent as request_sent,
    )
    from dynamo.transactions import (
        Transaction as Transaction,
    )
    from dynamo.transactions import (
        joined as joined,
    )
    from dynamo.unique.declarations import (
        Unique as Unique,
    )
    from dynamo.unique.declarations import (
        casefolded as casefolded,
    )

__all__, __getattr__ = lazily(
    __name__,
    {
        "dynamo.attributes": (
            "BooleanAttribute ChoiceAttribute DateAttribute DateTimeAttribute "
            "DecimalAttribute IntegerAttribute JSONAttribute TextAttribute"
        ),
        "dynamo.exceptions": (
            "AlreadyDone AlreadyExists BadCursor Busy ConditionFailed DamagedItem "
            "DoesNotExist DynamoError Refused Rejected RequestIdReused Stale "
            "TableMissing Taken Unavailable"
        ),
        "dynamo.models": "Model",
        "dynamo.pages": "GlobalSecondaryIndex Page",
        "dynamo.signals": "request_sent",
        "dynamo.transactions": "Transaction joined",
        "dynamo.unique.declarations": "Unique casefolded",
    },
)
