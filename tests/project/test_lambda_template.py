"""The SAM template of the site on AWS Lambda. tests/serverless runs what its events start."""

import ast
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from invoices.document.invoice import Customer
from invoices.store.customers import add_customer
from staff.reports import KINDS
from tests.cloudformation import linted, printed
from tests.commands import ROOT, run, run_for_real
from tests.factories import make_user
from tests.invoice_factories import issued
from tests.policies import listed, rights, rights_for
from tests.requests import Requests

# Read and not imported: that would set up Django again.
SERVERLESS = ast.parse((ROOT / "project" / "serverless.py").read_text(encoding="utf-8")).body
[_COMMANDS] = [item for item in SERVERLESS if ast.unparse(item).startswith("COMMANDS =")]
COMMANDS = set(ast.literal_eval(_COMMANDS.value))  # type: ignore[attr-defined]  # an assignment
PAGE = (ROOT / "docs" / "lambda.md").read_text(encoding="utf-8")

TABLE = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/"


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return printed("lambdatemplate")


def of_type(template: dict[str, Any], kind: str) -> dict[str, Any]:
    """The properties of the resources of a type, by their names."""
    return {
        name: resource["Properties"]
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def allowed(template: dict[str, Any], role: str) -> list[tuple[str, Any]]:
    """Each action with each resource that a role allows."""
    return [
        (action, resource)
        for policy in template["Resources"][role]["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    ]


def allowed_on_tables(template: dict[str, Any], role: str) -> set[tuple[str, str]]:
    return {
        (resource["Fn::Sub"].removeprefix(TABLE), action.removeprefix("dynamodb:"))
        for action, resource in allowed(template, role)
        if action.startswith("dynamodb:")
    }


def test_cfn_lint_finds_nothing_in_any_template(tmp_path: Path) -> None:
    written = []
    for command in ("lambdatemplate", "cloudformation"):
        # In a process of its own: with the tables of tests there are too many.
        document, _err, code = run_for_real(command)
        assert code == 0
        written.append(tmp_path / f"{command}.json")
        written[-1].write_text(document)

    templates = [
        path
        for path in (ROOT / "deploy").glob("*/*.yaml")
        if "AWSTemplateFormatVersion" in path.read_text(encoding="utf-8")
    ]
    assert len(templates) == 2
    assert linted(*written, *templates) == (0, "", "")


def test_the_template_has_the_same_tables_as_that_of_cloudformation(
    template: dict[str, Any],
) -> None:
    kind = "AWS::DynamoDB::Table"

    tables = of_type(template, kind)
    # Its stream invokes the function of tasks.
    stream = {"StreamSpecification": {"StreamViewType": "KEYS_ONLY"}}
    others = of_type(printed("cloudformation"), kind)
    assert tables == others | {"TasksTable": others["TasksTable"] | stream}
    assert all(
        (resource["Condition"], resource["DeletionPolicy"]) == ("CreatesTables", "Retain")
        for resource in template["Resources"].values()
        if resource["Type"] == kind
    )


OF_BOTH = {"ssm:GetParameter", "kms:Decrypt", "logs:CreateLogStream", "logs:PutLogEvents"}
OF_EXPORTS = {"s3:GetObject"}
STORING_EXPORTS = {"s3:AbortMultipartUpload", "s3:PutObject"}


@pytest.mark.parametrize(
    ("role", "policies", "others"),
    [
        # tests/project/test_url_map.py holds the policy against the requests of all pages.
        ("SiteRole", ["site"], OF_BOTH | OF_EXPORTS),
        ("CommandsRole", ["site", "reports"], OF_BOTH),
        ("TasksRole", ["site", "tasks", "reports"], OF_BOTH | STORING_EXPORTS),
    ],
)
def test_a_role_has_the_rights_of_its_policies_and_no_others(
    template: dict[str, Any], role: str, policies: list[str], others: set[str]
) -> None:
    assert allowed_on_tables(template, role) == {*chain.from_iterable(map(rights, policies))}
    assert {item for item, _resource in allowed(template, role) if "dynamodb" not in item} == others


@pytest.mark.usefixtures("engine")
def test_the_requests_of_all_commands_are_allowed(
    template: dict[str, Any], requests_sent: Requests
) -> None:
    ann = make_user(username="ann", email="ann@example.org").pk
    make_user(username="bob", email="bob@example.org")
    issued(ann)
    add_customer(ann, Customer("Carol"), request_id="1")
    requests_sent.clear()
    ran = set()

    for command, *arguments in (
        ["changeemail", "ann", "ann@example.net"],
        ["changeusername", "ann", "anna"],
        ["verifyemail", "anna"],
        ["deactivateuser", "anna"],
        ["activateuser", "anna"],
        ["grantstaff", "anna", "--superuser"],
        ["revokestaff", "anna"],
        ["showuser", "anna"],
        ["deleteuser", "anna", "--no-input"],
        ["checkguards"],
        ["checkinvoices"],
        *(["storereport", name] for name in KINDS),
    ):
        out, err, code = run(command, *arguments)
        assert (code, err) == (0, ""), (command, out)
        ran.add(command)

    assert ran == COMMANDS
    needed = {item for item in rights_for(requests_sent) if not item[0].startswith("test")}
    assert needed <= allowed_on_tables(template, "CommandsRole")


def test_the_sweep_runs_every_five_minutes(template: dict[str, Any]) -> None:
    sweep = template["Resources"]["Tasks"]["Properties"]["Events"]["Sweep"]["Properties"]

    assert sweep["ScheduleExpression"] == "rate(5 minutes)"


def test_the_exports_are_as_private_as_uploads(template: dict[str, Any]) -> None:
    exports, uploads = (
        {name: value for name, value in bucket.items() if name.endswith(("ion", "Controls"))}
        for bucket in of_type(template, "AWS::S3::Bucket").values()
    )

    assert exports.pop("LifecycleConfiguration") != uploads.pop("LifecycleConfiguration")
    assert exports == uploads
    assert len(exports) == 3


def test_the_environment_of_a_function_has_no_password(template: dict[str, Any]) -> None:
    pattern = template["Parameters"]["EmailUrl"]["AllowedPattern"]
    user = "smtp+tls://user"

    # The last one is a host and its port.
    for url in ("smtp://localhost:25", f"{user}@mail.example.com:587", f"{user}:1234"):
        assert re.fullmatch(pattern, url)
    assert re.fullmatch(pattern, f"{user}%40example.com@mail.example.com")
    for secret in ("password", "1234"):
        assert not re.fullmatch(pattern, f"{user}:{secret}@mail.example.com:587")
        assert not re.fullmatch(pattern, f"{user}:{secret}@mail.example.com")


def test_the_site_reads_every_variable_that_is_set_and_has_every_handler(
    template: dict[str, Any],
) -> None:
    # tests/project/test_docs.py holds that the table has the variables that are read.
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    read = set(re.findall(r"^\| `([A-Z][A-Z0-9_]+)` \|", page, re.MULTILINE))
    defined = {item.name for item in SERVERLESS if isinstance(item, ast.FunctionDef)}

    for function in of_type(template, "AWS::Serverless::Function").values():
        assert function["Environment"]["Variables"].keys() <= read
        assert function["Handler"].removeprefix("project.serverless.") in defined


def test_the_table_prefix_is_used_by_the_tables_the_rights_and_the_site(settings: Any) -> None:
    settings.DYNAMODB_TABLE_PREFIX = "staging-"

    template = printed("lambdatemplate")

    names = {value["TableName"] for value in of_type(template, "AWS::DynamoDB::Table").values()}
    rights = allowed_on_tables(template, "CommandsRole")
    named = {table.removesuffix("/index/*") for table, _action in rights}
    # Other tests declare tables of their own.
    assert named == {name for name in names if not name.startswith("staging-test")}
    site = template["Resources"]["Site"]["Properties"]
    assert site["Environment"]["Variables"]["DYNAMODB_TABLE_PREFIX"] == "staging-"


def test_without_the_files_of_a_checkout_the_command_says_what_it_needs(
    settings: Any, tmp_path: Path
) -> None:
    settings.BASE_DIR = tmp_path

    out, err, code = run("lambdatemplate")

    assert (out, err.count("\n"), code) == ("", 1, 1)
    assert err.startswith("CommandError: Use a checkout after `make install`: ")


def test_only_tables_and_buckets_outlive_the_stack_and_alarms_cost_nothing(
    template: dict[str, Any],
) -> None:
    kept = {
        resource["Type"]
        for resource in template["Resources"].values()
        if resource.get("DeletionPolicy") == "Retain"
    }

    assert kept == {"AWS::DynamoDB::Table", "AWS::S3::Bucket"}
    # https://aws.amazon.com/cloudwatch/pricing/: ten in each account.
    assert len(of_type(template, "AWS::CloudWatch::Alarm")) <= 10


def test_the_docs_list_parameters_commands_tables_and_alarms(template: dict[str, Any]) -> None:
    [runs] = re.findall(r"^- The function runs ([^.]+)\.", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", runs)) == COMMANDS
    [stays] = re.findall(r"^for table in (.+); do$", PAGE, re.MULTILINE)
    tables = of_type(template, "AWS::DynamoDB::Table").values()
    names = {table["TableName"] for table in tables}
    assert set(stays.split()) == {name for name in names if not name.startswith("test")}
    rows = PAGE.partition("## Alarms")[2].partition("\n## ")[0]
    named = {
        name for row in re.findall(r"^\| (`.+?) \|", rows, re.MULTILINE) for name in row.split(", ")
    }
    assert named == {f"`{name}`" for name in of_type(template, "AWS::CloudWatch::Alarm")}
    assert not [name for name in template["Parameters"] if not re.search(rf"\b{name}\b", PAGE)]


def test_every_documented_deployment_makes_a_new_version() -> None:
    # A new version needs a new key: for SAM, parameters with new values are no change.
    deployments = re.findall(r"aws cloudformation deploy --stack(?:.*\\\n)*.*", PAGE)
    assert deployments
    assert all(" CodeKey=" in deployment for deployment in deployments)
