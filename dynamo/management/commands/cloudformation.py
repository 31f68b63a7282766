from __future__ import annotations

import json
from typing import Any

from dynamo.cloudformation import template
from dynamo.management.base import DynamoCommand
from dynamo.tables import all_tables


class Command(DynamoCommand):
    help = "Prints a CloudFormation template of all tables, in JSON."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(json.dumps(template(all_tables()), indent=2))
