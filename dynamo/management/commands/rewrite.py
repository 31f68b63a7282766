"""`rewrite`: call a function for each item of a model, and save what it changed."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.module_loading import import_string

from dynamo.client import bulk
from dynamo.client.tally import CountingPool, collect
from dynamo.exceptions import DamagedItem, DoesNotExist, Refused, Taken
from dynamo.management.base import DynamoCommand, model_type, positive
from dynamo.management.progress import State, add_state, progress_bars
from dynamo.model.base import Model
from dynamo.runtime.terminal import printable, quantity
from dynamo.wire.types import Item
from dynamo.wire.values import UNUSABLE

THREADS = 8
BATCH = 256
#: An item is read this many times if others change it.
ATTEMPTS = 5

#: Sets attributes of the item, or returns values for `change`.
Change = Callable[[Any], Mapping[str, object] | None]
#: The result for an item: the names of the changed attributes, or the error.
Outcome = list[str] | Exception


class Command(DynamoCommand):
    help = (
        "Call a function with each item of a model, and save what it changed, under the version of "
        "the item. The function sets attributes or returns a dict of values. It is called again if "
        "others change the item meanwhile, or if the command continues, so it must be repeatable. "
        "Reads the whole table: 1 read unit per 4 KB. Exits 1 if a change was rejected."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        kind = model_type(Model, "stored")
        parser.add_argument("model", metavar="APP.MODEL", type=kind, help="such as club.Member")
        parser.add_argument("function", metavar="FUNCTION", help="such as club.changes.add_country")
        parser.add_argument(
            "--rate", type=positive, metavar="UNITS", help="write units per second, at most"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print which attributes of which items change"
        )
        add_state(parser)

    def handle(self, *args: object, **options: Any) -> None:
        model, rate, is_dry = options["model"], options["rate"], options["dry_run"]
        try:
            change = import_string(options["function"])
        except ImportError as error:
            raise CommandError(str(error)) from error
        state = State(options["state"], [model._meta.label, options["function"], str(is_dry)])
        counts = dict.fromkeys(("changed", "unchanged", "rejected"), 0)
        call = partial(_changed, model, change, is_dry=is_dry)
        places = state.places()
        began = time.monotonic()
        pages = bulk.pages(model.table(), places=places)
        with CountingPool(THREADS) as pool, progress_bars() as progress, collect() as tally:
            for page in pages:
                state.save(places=places)
                items = [item for item in page if model.is_item(item)]
                # With a rate, a batch has as many items as are rewritten in about a second.
                for batch in pool.batches(call, items, rate or BATCH):
                    for item, outcome in batch:
                        counts[self._report(model, item, outcome, is_dry=is_dry)] += 1
                    progress("Items read", len(batch))
                    if rate:
                        ends_at = began + tally.write_units / rate
                        time.sleep(max(0, ends_at - time.monotonic()))
        state.end()
        read = quantity(sum(counts.values()), "item")
        what = ", ".join(f"{count:,} {word}" for word, count in counts.items())
        self.tell(f"{read} read: {what}{' (not saved)' if is_dry else ''}.")
        if counts["rejected"]:
            raise CommandError(f"{quantity(counts['rejected'], 'item')} could not be changed.")

    def _report(self, model: type[Model], item: Item, outcome: Outcome, *, is_dry: bool) -> str:
        key = " ".join(model.key_texts(item))
        if isinstance(outcome, Exception):
            self.stderr.write(printable(f"{key}: {outcome}"))
            return "rejected"
        if is_dry and outcome:
            self.stdout.write(printable(f"{key}  {', '.join(outcome)}"))
        return "changed" if outcome else "unchanged"


def _changed(model: type[Model], change: Change, stored: Item, *, is_dry: bool) -> Outcome:
    try:
        item = model.from_raw_data(stored)
        for _attempt in range(ATTEMPTS):
            # The order matters, because the function may set attributes as well.
            returned = change(item) or {}
            values = {**item._assigned(item.stored), **returned}
            if not item._changed(values):
                return []
            try:
                if not is_dry:
                    item.change(**values)
                return [*values]
            except model.Stale:
                try:
                    item.refresh()
                except model.DoesNotExist:
                    return []  # deleted meanwhile
    except (DamagedItem, DoesNotExist, Refused, Taken, *UNUSABLE) as error:
        return error
    return model.Stale(model._noun())
