from __future__ import annotations

from typing import Any

from dynamo.management.base import DynamoCommand
from dynamo.tables import all_tables, create


class Command(DynamoCommand):
    help = "Creates missing tables, and completes existing ones. Safe to repeat."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        tables = all_tables()
        done = [sentence for table in tables for sentence in create(table)]
        if not done:
            done = [f"Nothing to do: all {len(tables)} tables exist."]
        self.stdout.write("\n".join(done))
