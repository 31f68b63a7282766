"""`createtables`: create the tables of all models, and add what existing tables lack."""

from dynamo.management.base import DynamoCommand
from dynamo.tables.definitions import all_tables, create


class Command(DynamoCommand):
    help = "Creates missing tables, and completes existing ones. Safe to repeat."
    requires_system_checks = ()

    def handle(self, *args: object, **options: object) -> None:
        tables = all_tables()
        is_done = False
        for table in tables:
            # Each result is printed at once, because AWS takes up to a minute for a table, and a
            # later one may fail.
            for sentence in create(table, self.tell):
                is_done = True
                self.tell(sentence)
        if not is_done:
            exist = f"all {len(tables)} tables exist" if len(tables) > 1 else "the table exists"
            self.tell(f"Nothing to do: {exist}.")
