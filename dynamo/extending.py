"""Extension points: what packages and sites that go deeper than models may build on.

They may change with each minor release, and the changelog then says so (docs/stable.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from dynamo._internal import bulk as bulk
    from dynamo._internal.bulk import (
        READ_MAX_ITEMS as READ_MAX_ITEMS,
        query_pages as query_pages,
        read_batches as read_batches,
    )
    from dynamo._internal.checking.findings import (
        DEFAULT_SIZES as DEFAULT_SIZES,
        Findings as Findings,
        Progress as Progress,
        Sizes as Sizes,
        Spool as Spool,
        confirmed as confirmed,
        scanned as scanned,
        unseen as unseen,
    )
    from dynamo._internal.checking.guards import check_guards as check_guards
    from dynamo._internal.checking.snapshots import (
        FAULTS as FAULTS,
        Snapshot as Snapshot,
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
    from dynamo._internal.items import (
        Item as Item,
        PlainModel as PlainModel,
        text_of as text_of,
    )
    from dynamo._internal.processes import (
        PerProcess as PerProcess,
        begin_process as begin_process,
        on_new_process as on_new_process,
    )
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
    from dynamo._internal.together import together as together
    from dynamo._internal.turns import (
        TooManyPages as TooManyPages,
        in_turn as in_turn,
        let_pages_go_first as let_pages_go_first,
        result_in_turn as result_in_turn,
        turn_passed_on as turn_passed_on,
    )
    from dynamo._internal.updates import Update as Update
    from dynamo.management.commands.cloudformation import template as template
    from dynamo.transactions import (
        READ_TOGETHER as READ_TOGETHER,
        Otherwise as Otherwise,
        Refusal as Refusal,
        Write as Write,
        read_together as read_together,
    )
    from dynamo.unique.declarations import SEPARATOR as SEPARATOR
    from dynamo.unique.guarding import is_reserved as is_reserved

__all__, __getattr__ = lazily(
    __name__,
    {
        "dynamo._internal": "bulk",
        "dynamo._internal.bulk": "READ_MAX_ITEMS query_pages read_batches",
        "dynamo._internal.checking.findings": (
            "DEFAULT_SIZES Findings Progress Sizes Spool confirmed scanned unseen"
        ),
        "dynamo._internal.checking.guards": "check_guards",
        "dynamo._internal.checking.snapshots": "FAULTS Snapshot is_owner",
        "dynamo._internal.client": "addressing connections credentials",
        "dynamo._internal.client.deadline": (
            "at_most page_seconds_left uncounted uncounted_seconds within"
        ),
        "dynamo._internal.client.retries": "cancellation_codes outcome_of pause_seconds",
        "dynamo._internal.client.sending": "send",
        "dynamo._internal.clock": "now",
        "dynamo._internal.errors": "ErrorWithValues",
        "dynamo._internal.items": "Item PlainModel text_of",
        "dynamo._internal.processes": "PerProcess begin_process on_new_process",
        "dynamo._internal.tables": "all_tables",
        "dynamo._internal.tally": (
            "CountingPool Tally consumed_units counted_on counting table_names"
        ),
        "dynamo._internal.terminal": "printable",
        "dynamo._internal.together": "together",
        "dynamo._internal.turns": (
            "TooManyPages in_turn let_pages_go_first result_in_turn turn_passed_on"
        ),
        "dynamo._internal.updates": "Update",
        "dynamo.management.commands.cloudformation": "template",
        "dynamo.transactions": "Otherwise READ_TOGETHER Refusal Write read_together",
        "dynamo.unique.declarations": "SEPARATOR",
        "dynamo.unique.guarding": "is_reserved",
    },
)
