"""`cloudformation`: the tables as a CloudFormation template.

An app that needs more than tables has a file `cloudformation.json` next to its `models.py`:
sections of the template with the entries that it adds.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from django.apps import apps

from dynamo.management.base import DynamoCommand
from dynamo.tables.definitions import Table, all_tables

#: Sections (`Parameters`, `Conditions`, `Resources`, `Outputs`) with entries by logical ids.
Part = Mapping[str, Mapping[str, object]]


class Command(DynamoCommand):
    help = "Prints a CloudFormation template of all tables, and of what apps need besides, in JSON."
    requires_system_checks = ()

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(json.dumps(template(all_tables(), parts_of_apps()), indent=2))


def parts_of_apps() -> Iterator[Part]:
    """The parts of the template that apps need in addition to their tables."""
    for config in apps.get_app_configs():
        file = Path(config.path, "cloudformation.json")
        if file.exists():
            yield json.loads(file.read_text(encoding="utf-8"))


def template(tables: Iterable[Table], parts: Iterable[Part] = ()) -> dict[str, Any]:
    """The template of `tables` and `parts`.

    A table is kept when its stack is deleted, or when it is removed from the template.
    """
    names = ("Parameters", "Conditions", "Resources", "Outputs")
    sections: dict[str, dict[str, object]] = {name: {} for name in names}
    for table in tables:
        logical_id = _logical_id(table)
        sections["Resources"][logical_id] = {
            "Type": "AWS::DynamoDB::Table",
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": _properties(table),
        }
        sections["Outputs"] |= {
            f"{logical_id}Name": {"Value": {"Ref": logical_id}},
            f"{logical_id}Arn": {"Value": {"Fn::GetAtt": [logical_id, "Arn"]}},
        }
    for part in parts:
        for section, entries in part.items():
            sections[section].update(entries)
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "The DynamoDB tables of the site, printed by manage.py cloudformation",
    } | {name: entries for name, entries in sections.items() if entries}


def _properties(table: Table) -> dict[str, object]:
    ttl = {"AttributeName": table.ttl_attribute, "Enabled": True}
    return {
        "TableName": table.name,
        "BillingMode": "PAY_PER_REQUEST",
        **table.schema,
        "SSESpecification": {"SSEEnabled": True},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "DeletionProtectionEnabled": True,
        **({"TimeToLiveSpecification": ttl} if table.ttl_attribute else {}),
    }


def _logical_id(table: Table) -> str:
    # The logical id has only letters and digits. It has no prefix, so it is the same in every
    # environment.
    words = re.split(r"[^a-zA-Z0-9]+", table.base_name)
    return "".join(word[:1].upper() + word[1:] for word in words) + "Table"
