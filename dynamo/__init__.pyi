from dynamo.client.tally import Tally as Tally, collect as collect
from dynamo.exceptions import (
    AlreadyDone as AlreadyDone,
    AlreadyExists as AlreadyExists,
    BadCursor as BadCursor,
    Busy as Busy,
    ConditionFailed as ConditionFailed,
    DamagedItem as DamagedItem,
    DoesNotExist as DoesNotExist,
    DynamoError as DynamoError,
    Refused as Refused,
    Rejected as Rejected,
    RequestIdReused as RequestIdReused,
    Stale as Stale,
    TableMissing as TableMissing,
    Taken as Taken,
    Unavailable as Unavailable,
)
from dynamo.model.base import Model as Model, ensure as ensure
from dynamo.model.pages import GlobalSecondaryIndex as GlobalSecondaryIndex, Page as Page
from dynamo.model.references import Reference as Reference
from dynamo.model.unique import Unique as Unique, casefolded as casefolded
from dynamo.signals import request_sent as request_sent
from dynamo.transactions import Transaction as Transaction, joined as joined
from dynamo.wire.attributes import (
    BooleanAttribute as BooleanAttribute,
    DateAttribute as DateAttribute,
    DateTimeAttribute as DateTimeAttribute,
    DecimalAttribute as DecimalAttribute,
    IntegerAttribute as IntegerAttribute,
    JSONAttribute as JSONAttribute,
    TextAttribute as TextAttribute,
)
