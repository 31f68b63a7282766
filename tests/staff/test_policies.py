"""The policies in deploy/: pages may scan only accounts, and not change the audit log."""

from pathlib import Path

import pytest

from accounts.models import User
from dynamo.tables.definitions import all_tables
from invoices.models import InvoiceItem
from locks.lock import Lock, claim_once
from staff.reports import KINDS
from tests.commands import run
from tests.factories import make_user
from tests.invoice_factories import DAY, issued
from tests.items import put_item, remove_item
from tests.numbered import remove_counter
from tests.pages import Page
from tests.policies import rights, rights_for, statements
from tests.requests import Requests
from tests.session_maps import begun
from tests.staff.scenes import WHY, act, below, let_in, logged_actions, make_staff, stored_report


@pytest.mark.parametrize(("policy", "unused"), [("site", {"uploads"}), ("operator", set())])
def test_a_policy_names_exactly_the_tables_that_are_used(policy: str, unused: set[str]) -> None:
    named = {table for table, _action in rights(policy)}

    # Other tests declare tables of their own.
    ours = [table for table in all_tables() if not table.base_name.startswith("test")]
    assert {item for item in named if "/" not in item} == {our.base_name for our in ours} - unused
    # Pages query the indexes; commands may.
    indexed = {f"{table.base_name}/index/*" for table in ours if table.indexes}
    of_indexes = {item for item in named if "/" in item}
    assert of_indexes == indexed if policy == "site" else of_indexes <= indexed


WRITES = {"BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"}
TABLES = {"CreateTable", "DeleteTable", "UpdateTable"}
ANY = "any table"


@pytest.mark.parametrize(
    ("policy", "table", "forbidden"),
    [
        ("site", ANY, TABLES),
        # Pages read entries and append new ones.
        ("site", "auditlog", WRITES - {"PutItem"}),
        ("site", "reports", WRITES),
        ("site", "invoices", {"BatchWriteItem", "DeleteItem"}),
        ("operator", "invoices", {"BatchWriteItem", "DeleteItem"}),
        ("operator", "auditlog", WRITES),
    ],
)
def test_a_policy_does_not_allow(policy: str, table: str, forbidden: set[str]) -> None:
    allowed = {action for name, action in rights(policy) if table in {ANY, name}}

    assert allowed & forbidden == set()


def test_pages_may_scan_only_the_table_of_accounts() -> None:
    assert {table for table, action in rights("site") if action == "Scan"} == {"users"}


def test_a_scheduled_report_can_only_write_itself() -> None:
    assert {right for right in rights("reports") if right[1] in WRITES} == {("reports", "PutItem")}


@pytest.mark.parametrize(
    ("policy", "service", "needed"),
    [
        # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
        ("kms", "dynamodb", "CreateGrant Decrypt DescribeKey Encrypt GenerateDataKey* ReEncrypt*"),
        # PutObject encrypts; parts that are put together and HeadObject's checksum are decrypted.
        ("uploads", "s3", "Decrypt GenerateDataKey"),
    ],
)
def test_a_key_is_used_only_through_the_service_that_encrypts(
    policy: str, service: str, needed: str
) -> None:
    [statement] = [
        statement for statement in statements(policy) if "kms" in str(statement["Resource"])
    ]

    assert set(statement["Action"]) == {f"kms:{action}" for action in needed.split()}
    assert statement["Resource"] == "arn:aws:kms:REGION:ACCOUNT:key/KEY"
    via = f"{service}.REGION.amazonaws.com"
    assert statement["Condition"] == {"StringEquals": {"kms:ViaService": via}}


@pytest.mark.usefixtures("engine")
def test_the_requests_of_staff_pages_are_allowed(requests_sent: Requests) -> None:
    """Those that the URL map leaves out: of a lock, a claim, a session and an invoice."""
    client = let_in(make_staff())
    bob = make_user(username="bob")
    session = begun(bob)
    Lock("nightly", lease_seconds=600).acquire()
    claim_once("import")
    label = issued(bob.pk).label
    requests_sent.clear()

    client.get(f"{below(bob)}invoices/?year={DAY.year}")
    client.get(f"{below(bob)}invoices/{label}/")
    act(client, bob, "endSession", session)
    for name in ("nightly", "import"):
        holder = Page(client.get(f"/admin/lock/?name={name}")).value("holder")
        client.post(f"/admin/lock/?name={name}", WHY | {"holder": holder})

    needed = set(rights_for(requests_sent))
    assert logged_actions() == [*["openInvoices"] * 2, "endSession", *["breakLock"] * 2]
    assert {"ConditionCheckItem", "DeleteItem"} <= {action for _table, action in needed}
    assert needed <= set(rights("site"))


@pytest.mark.fault_of("moto", "loses updates that meet")
@pytest.mark.usefixtures("engine")
def test_the_requests_of_commands_are_allowed(requests_sent: Requests, tmp_path: Path) -> None:
    rows = tmp_path / "users.csv"
    rows.write_text("username,email\ncarl,carl@example.org\n")
    bob = make_user(username="bob", email="bob@example.org")
    claim_once("import")
    number, line = f"{DAY.year}-000001", "--line=Work;1;100;19"
    requests_sent.clear()

    for command in (
        ["createtables"],
        ["createuser", "--username=ann", "--email=ann@example.org", "--unusable-password"],
        ["changeemail", "ann", "ann@example.net"],
        ["changeusername", "ann", "anna"],
        ["verifyemail", "anna"],
        ["deactivateuser", "anna"],
        ["activateuser", "anna"],
        ["listusers"],
        ["importusers", str(rows), "--dry-run"],
        ["importusers", str(rows)],
        ["deleteuser", "carl", "--no-input"],
        ["nextvalue", "tickets"],
        ["nextvalue", "tickets", "--strategy=optimistic"],
        ["countertest", "--rounds=1", "--tasks=2"],
        ["issueinvoice", "--user=anna", "--customer=Bob Ltd", line, f"--date={DAY}"],
        ["showinvoice", "--user=anna", number],
        ["listinvoices", "--user=anna"],
        ["voidinvoice", "--user=anna", number, "--reason=Wrong customer"],
        ["checkinvoices"],
        ["listlocks"],
        ["breaklock", "import", "--no-input"],
    ):
        out, err, code = run(*command)
        assert (code, err) == (0, ""), (command, out)
    put_item(User.table(), pk="email#bob@example.org", owner="nobody")
    remove_item(User.table(), pk="userName#bob")
    assert run("checkguards", "--repair")[2] == 0
    run("check", "--tag=dynamodb")

    assert User.named("bob") == User.named("bob@example.org") == bob
    needed = {item for item in rights_for(requests_sent) if not item[0].startswith("test")}
    assert needed <= set(rights("operator"))


@pytest.mark.usefixtures("engine")
def test_the_requests_of_reports_are_allowed_for_the_schedule_and_operators(
    requests_sent: Requests,
) -> None:
    bob = make_user(username="bob")
    invoice = issued(bob.pk)
    remove_item("users", pk="userName#bob")
    remove_counter(InvoiceItem, invoice.series)
    requests_sent.clear()

    for name in KINDS:
        assert stored_report(name).result

    needed = set(rights_for(requests_sent))
    assert {("users", "GetItem"), ("invoices", "GetItem"), ("uploads", "Scan")} <= needed
    assert needed <= set(rights("reports")) | {("reports", "GetItem")}
    assert needed <= set(rights("operator")) | {("reports", "GetItem")}
