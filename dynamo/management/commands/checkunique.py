"""`checkunique`: check that each item of a model has its guard items, and each of them its item."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand, model_type
from dynamo.management.progress import progress_bars
from dynamo.model.base import Model
from dynamo.runtime.terminal import quantity
from dynamo.tables.guards import Report, check_guards, delete_guards


class Command(DynamoCommand):
    """Checks, and repairs with `--repair`, while the site is used. Costs: see `check_guards`.

    A command for one model derives from it and names the `model`. `oldest_by` is that of
    `check_guards`. `settled_by` says how to give an item another value, as in "changeemail with its
    key".
    """

    help = (
        "Check that every item of a model has a guard item for each unique value, and every guard "
        "item its item. missing: an item without its guard item; orphaned: a guard item of a value "
        "that no item has; foreign: the guard item of an item's value names another item as its "
        "owner; shared: that other item has the value too, so a person must decide. "
        "Reads the whole table. Exits 1 if something is still wrong."
    )
    #: The model; if None, it is an argument of the command.
    model: Any = None
    #: The name of the number of items in the JSON output.
    items_name = "items"
    oldest_by: str | None = None
    settled_by: str = ""

    @property
    def noun(self) -> str:
        """The name of an item in the text."""
        return str(self.model._noun())

    def add_arguments(self, parser: CommandParser) -> None:
        if self.model is None:
            # Guard items of numbered items have numbers; checkseries checks them.
            kind = model_type(
                Model,
                "unique",
                lambda model: model._guard_table().is_separate or not model._range_keyname,
            )
            parser.add_argument("model", metavar="APP.MODEL", type=kind, help="such as club.Member")
        parser.add_argument(
            "--repair",
            action="store_true",
            help="write, delete and replace guard items; "
            "two items with the same value are not changed",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument(
            "--removed",
            metavar="NAMES",
            help="only delete the guard items of a Unique that the model no longer declares; NAMES "
            "are its attributes as stored, such as email or club,card",
        )

    def handle(self, *args: object, **options: Any) -> None:
        """Check and print; exit with code 1 if something is still wrong."""
        self.model, repair = options.get("model", self.model), options["repair"]
        if options["removed"]:
            try:
                deleted = delete_guards(self.model, options["removed"])
            except ValueError as error:
                raise CommandError(f"{error} Release the code without it first.") from error
            self.tell(f"{quantity(deleted, 'guard')} deleted.")
            return
        with progress_bars(shown=not options["json"]) as progress:
            report = check_guards(
                self.model, repair=repair, oldest_by=self.oldest_by, progress=progress
            )
        (self._print_json if options["json"] else self._print_text)(report)
        if wrong := self._still_wrong(report, repair=repair):
            raise CommandError(wrong)

    def _print_json(self, report: Report) -> None:
        found = {
            fault: [{"pk": pk, "value": key} for pk, key, _outcome in findings.listed]
            for fault, findings in report.found.items()
        }
        more = {fault: findings.more for fault, findings in report.found.items() if findings.more}
        shown = {
            self.items_name: report.items,
            "guards": report.guards,
            **found,
            "repaired": report.repaired,
            **({"more": more} if more else {}),
            **({"unsearchable": report.unsearchable} if report.unsearchable else {}),
        }
        self.stdout.write(json.dumps(shown, ensure_ascii=False))

    def _print_text(self, report: Report) -> None:
        for fault, findings in report.found.items():
            for pk, key, outcome in findings.listed:
                self.stdout.write(f"{fault:<8}  {key}  {pk}{f'  ({outcome})' if outcome else ''}")
            if findings.more:
                self.stdout.write(f"{fault:<8}  … and {findings.more:,} more")
        found = ", ".join(f"{findings.count} {fault}" for fault, findings in report.found.items())
        read = f"{quantity(report.items, self.noun)}, {quantity(report.guards, 'guard')}"
        self.stdout.write(f"{read}: {found}; {report.repaired} repaired.")
        if report.made_searchable:
            self.stdout.write(f"{quantity(report.made_searchable, 'guard')} made searchable.")
        if report.unsearchable:
            guards = quantity(report.unsearchable, "guard")
            self.stdout.write(f"Not found by searches: {guards} (run again with --repair).")

    def _still_wrong(self, report: Report, *, repair: bool) -> str:
        """The remaining problems in one line; empty without problems."""
        sentences = []
        if report.still_wrong:
            helps = not repair and report.still_wrong > report.shared
            advice = " (run again with --repair)" if helps else ""
            sentences.append(f"Wrong: {quantity(report.still_wrong, 'guard')}{advice}.")
        if report.shared:
            how = f" ({self.settled_by})" if self.settled_by else ""
            sentences.append(
                f"Shared: {report.shared}. Another {self.noun} has the same value: change that of "
                f"one of the two{how}, then run again with --repair."
            )
        if report.unusable_example:
            pk, stored_name = report.unusable_example
            items = quantity(report.unusable, self.noun)
            sentences.append(f"Unusable values in {items}, such as the {stored_name} of {pk}.")
        return " ".join(sentences)
