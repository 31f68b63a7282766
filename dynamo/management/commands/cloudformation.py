from __future__ import annotations

import json
from typing import Any

from dynamo.cloudformation import parts_of_apps, template
from dynamo.management.base import DynamoCommand
from dynamo.tables import all_tables


class Command(DynamoCommand):
    help = "Prints a CloudFormation template of all tables, and of what apps need besides, in JSON."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(json.dumps(template(all_tables(), parts_of_apps()), indent=2))
