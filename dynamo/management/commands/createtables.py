"""`createtables`: create the tables of all models, and what existing ones lack."""

from dynamo.management.base import DynamoCommand
from dynamo.tables.definitions import all_tables, create


class Command(DynamoCommand):
    help = "Creates missing tables, and completes existing ones. Safe to repeat."
    requires_system_checks = ()

    def handle(self, *args: object, **options: object) -> None:
        tables = all_tables()
        is_done = False
        for table in tables:
            # Each at once: a table takes AWS up to a minute, and a later one may fail.
            for sentence in create(table, self.tell):
                is_done = True
                self.tell(sentence)
        if not is_done:
            exist = f"all {len(tables)} tables exist" if len(tables) > 1 else "the table exists"
            self.tell(f"Nothing to do: {exist}.")
