"""`flush`: delete all items of all tables."""

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import flush

from dynamo.client import bulk
from dynamo.client.sending import client
from dynamo.client.settings import RUNNER
from dynamo.management.base import DynamoCommand, is_confirmed
from dynamo.management.progress import progress_bars
from dynamo.runtime.no_database.base import has_database
from dynamo.runtime.terminal import quantity
from dynamo.signals import tables_emptied
from dynamo.tables.definitions import Table, all_tables
from dynamo.tables.findings import Progress


class Command(DynamoCommand, flush.Command):
    """Django's command.

    Without a relational database, or with `--dynamodb`, it empties the tables.
    """

    help = (
        "Delete ALL items of the tables of all models, also those of users, sessions and locks. "
        "Costs 1 read unit per 4 KB and 1 write unit per KB. With a relational database it "
        "empties that instead, unless --dynamodb is given."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--dynamodb", action="store_true", help="empty the tables of DynamoDB")

    def handle(self, **options: object) -> None:
        if has_database() and not options["dynamodb"]:
            # The command prints nothing if a program calls it, as Django does after each test.
            if options["interactive"]:
                self.stderr.write("DynamoDB is left out: give --dynamodb to empty its tables.")
            super().handle(**options)
            return
        if "inhibit_post_migrate" in options:
            raise CommandError(
                "Nothing was deleted. Django's test cases would empty these tables each time. "
                f"Derive yours from dynamo.test.TestCase, and use the runner {RUNNER}."
            )
        tables = all_tables()
        names = ", ".join(table.name for table in tables)
        question = f"This deletes ALL items at {client().meta.endpoint_url} of {names}."
        if options["interactive"] and not is_confirmed(question):
            raise CommandError("Nothing was deleted.")
        with progress_bars() as progress:
            count = 0
            for table in tables:
                # The scan is repeated until nothing is left. On dynoxide, a scan in segments misses
                # items when others are deleted at the same time.
                while deleted := _delete_all(table, progress):
                    count += deleted
        tables_emptied.send(None)
        self.tell(f"{quantity(count, 'item')} deleted, with guard items.")


def _delete_all(table: Table, progress: Progress) -> int:
    """Delete the items that a scan of `table` finds. Returns their number."""
    count = 0
    for keys in bulk.pages(table.name, [name for name, _type in table.key]):
        bulk.write_batches(table.name, [{"DeleteRequest": {"Key": key}} for key in keys])
        progress("Items deleted", len(keys))
        count += len(keys)
    return count
