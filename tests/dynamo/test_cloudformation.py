"""The CloudFormation template of the tables."""

from typing import Any

from dynamo.management.commands.cloudformation import template
from dynamo.tables.definitions import Table, all_tables
from tests.cloudformation import printed
from tests.requests import Requests


def test_the_template_has_every_table_of_the_models_under_ids_without_prefix(settings: Any) -> None:
    plain = printed()["Resources"]
    settings.DYNAMODB_TABLE_PREFIX = "staging-"
    resources = printed()["Resources"]

    tables = [
        resource for resource in resources.values() if resource["Type"] == "AWS::DynamoDB::Table"
    ]
    assert [table["Properties"]["TableName"] for table in tables] == [
        table.name for table in all_tables()
    ]
    assert resources.keys() == plain.keys()


def test_a_table_is_protected_and_kept_when_its_stack_is_deleted(requests_sent: Requests) -> None:
    document = printed()
    resources = document["Resources"]
    outputs = document["Outputs"]
    counters = resources["CountersTable"]

    assert counters["DeletionPolicy"] == counters["UpdateReplacePolicy"] == "Retain"
    assert counters["Properties"] == {
        "TableName": "counters",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "counterName", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "counterName", "AttributeType": "S"}],
        "SSESpecification": {"SSEEnabled": True},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "DeletionProtectionEnabled": True,
    }
    ttl = {"AttributeName": "expires", "Enabled": True}
    assert resources["CacheTable"]["Properties"]["TimeToLiveSpecification"] == ttl
    assert outputs["CountersTableName"] == {"Value": {"Ref": "CountersTable"}}
    assert outputs["CountersTableArn"] == {"Value": {"Fn::GetAtt": ["CountersTable", "Arn"]}}
    assert requests_sent.operations == []


def test_an_app_adds_sections_to_the_template() -> None:
    part = {"Parameters": {"Wanted": {"Type": "String"}}, "Resources": {"Other": {"Type": "A::B"}}}
    table = Table("app.badge-guards_2", "badge-guards_2", (("pk", "S"),))

    document = template([table], [part])

    assert document["Parameters"] == part["Parameters"]
    assert list(document["Resources"]) == ["BadgeGuards2Table", "Other"]
    assert "Conditions" not in document
