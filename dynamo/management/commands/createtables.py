from __future__ import annotations

from typing import Any

from dynamo.management.base import DynamoCommand
from dynamo.tables import all_tables, create


class Command(DynamoCommand):
    help = "Creates the tables that are missing, and completes those that lack something."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        tables = all_tables()
        nothing_done = True
        for table in tables:
            for sentence in create(table):
                self.stdout.write(sentence)
                nothing_done = False
        if nothing_done:
            self.stdout.write(f"Nothing to do: all {len(tables)} tables are there.")
