"""`lambdatemplate`: combine deploy/lambda.yaml with the tables. See docs/lambda.md."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from dynamo.management.base import DynamoCommand
from dynamo.management.commands.cloudformation import parts_of_apps, template
from dynamo.tables.definitions import all_tables


class Command(DynamoCommand):
    help = "Print a SAM template of the site on AWS Lambda, with its tables, as JSON."
    requires_system_checks = ()

    def handle(self, *args: object, **options: object) -> None:
        try:
            site = _site()
        except (ImportError, OSError) as error:
            # Production has no PyYAML, and the zip of the function has no deploy/.
            raise CommandError(f"Use a checkout after `make install`: {error}") from error
        # The output of `cloudformation`. The tables can also belong to another stack.
        made = template(all_tables(), parts_of_apps())
        outputs = made["Outputs"]
        for name, resource in made["Resources"].items():
            if resource["Type"] == "AWS::DynamoDB::Table":
                for item in (resource, outputs[f"{name}Name"], outputs[f"{name}Arn"]):
                    item["Condition"] = "CreatesTables"
        # The stream of this table invokes the function that runs tasks.
        stream = {"StreamViewType": "KEYS_ONLY"}
        made["Resources"]["TasksTable"]["Properties"]["StreamSpecification"] = stream
        for section, entries in site.items():
            made[section] = made[section] | entries if isinstance(entries, dict) else entries
        self.stdout.write(json.dumps(made, indent=1))


def _site() -> dict[str, object]:
    import yaml  # imported here, because only this command needs it

    class Loader(yaml.SafeLoader):
        """Reads CloudFormation's short forms, and the tags of deploy/lambda.yaml."""

    def function(loader: Loader, name: str, node: Any) -> dict[str, object]:
        if isinstance(node, yaml.ScalarNode):
            value: object = node.value.split(".", 1) if name == "GetAtt" else node.value
        else:
            value = loader.construct_sequence(node, deep=True)
        return {name if name == "Ref" else f"Fn::{name}": value}

    Loader.add_multi_constructor("!", function)
    Loader.add_constructor("!Policy", lambda _loader, node: _policy(node.value))
    Loader.add_constructor("!Setting", lambda _loader, node: getattr(settings, node.value))
    text = (settings.BASE_DIR / "deploy" / "lambda.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader)  # noqa: S506 - derived from SafeLoader


def _policy(name: str) -> Any:
    """deploy/iam-<name>.json for the resources of the template."""
    text = (settings.BASE_DIR / "deploy" / f"iam-{name}.json").read_text(encoding="utf-8")
    for written, meant in {
        "arn:aws:": "arn:${AWS::Partition}:",
        "REGION": "${AWS::Region}",
        "ACCOUNT": "${AWS::AccountId}",
        "BUCKET": "${ExportsBucket}",
        "/site/secret-keys": "${SecretKeyParameter}",
        "/site/email-password": "${EmailPasswordParameter}",
        "PREFIX": settings.DYNAMODB_TABLE_PREFIX,
    }.items():
        text = text.replace(written, meant)
    return _substituted(json.loads(text))


def _substituted(value: Any) -> Any:
    """`value` with `Fn::Sub` around each text that names something of the stack."""
    if isinstance(value, dict):
        return {name: _substituted(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_substituted(item) for item in value]
    return {"Fn::Sub": value} if isinstance(value, str) and "${" in value else value
