from dynamo._internal import bulk as bulk
from dynamo._internal.bulk import (
    READ_MAX_ITEMS as READ_MAX_ITEMS,
    query_pages as query_pages,
    read_batches as read_batches,
)
from dynamo._internal.checking.findings import (
    Findings as Findings,
    Progress as Progress,
    Spool as Spool,
    confirmed as confirmed,
    scanned as scanned,
    unseen as unseen,
)
from dynamo._internal.checking.guards import (
    FAULTS as FAULTS,
    Snapshot as Snapshot,
    check_guards as check_guards,
    is_owner as is_owner,
)
from dynamo._internal.client import (
    addressing as addressing,
    connections as connections,
    credentials as credentials,
)
from dynamo._internal.client.deadline import (
    at_most as at_most,
    page_seconds_left as page_seconds_left,
    uncounted as uncounted,
    uncounted_seconds as uncounted_seconds,
    within as within,
)
from dynamo._internal.client.retries import (
    cancellation_codes as cancellation_codes,
    outcome_of as outcome_of,
    pause_seconds as pause_seconds,
)
from dynamo._internal.client.sending import send as send
from dynamo._internal.clock import now as now
from dynamo._internal.errors import ErrorWithValues as ErrorWithValues
from dynamo._internal.gates import Gate as Gate, GateFull as GateFull
from dynamo._internal.items import Item as Item, PlainModel as PlainModel, text_of as text_of
from dynamo._internal.processes import PerProcess as PerProcess, begin_process as begin_process
from dynamo._internal.tables import all_tables as all_tables
from dynamo._internal.tally import (
    CountingPool as CountingPool,
    Tally as Tally,
    consumed_units as consumed_units,
    counted_on as counted_on,
    counting as counting,
    table_names as table_names,
)
from dynamo._internal.terminal import printable as printable
from dynamo._internal.threads import together as together
from dynamo._internal.turns import (
    TooManyPages as TooManyPages,
    in_turn as in_turn,
    let_pages_go_first as let_pages_go_first,
    turn_passed_on as turn_passed_on,
)
from dynamo._internal.updates import Update as Update
from dynamo.management.commands.cloudformation import (
    parts_of_apps as parts_of_apps,
    template as template,
)
from dynamo.transactions import (
    READ_TOGETHER as READ_TOGETHER,
    Otherwise as Otherwise,
    Refusal as Refusal,
    Write as Write,
    read_together as read_together,
)
from dynamo.unique import SEPARATOR as SEPARATOR
