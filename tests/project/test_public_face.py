"""The examples import from the library what docs/stable.md names, and nothing else.

The site also imports its building blocks.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.commands import ROOT

LIBRARY = ("accounts", "dynamo", "locks", "outbox", "sequences", "uploads")
SITE = ("invoices", "staff", "project")
STABLE = (ROOT / "docs" / "stable.md").read_text(encoding="utf-8")

#: These names may change with each minor release, and the changelog then says so.
BUILDING_BLOCKS = {
    "accounts.admin": {"AccountAdmin"},
    "accounts.attributes": {"deliverable_email", "Email", "is_deliverable"},
    "accounts.conf": {"LIMITS", "RESERVED_USERNAMES", "parsed_limit"},
    "accounts.emails.mails": {"mail_connection"},
    "accounts.exceptions": {"StaleUser", "TooManyAttempts", "UnknownUser"},
    "accounts.forms": {"PartialForm"},
    "accounts.languages": {"language_of"},
    "accounts.limits": {"attempts"},
    "accounts.limits.attempts": {"begin_mail_to_others"},
    "accounts.limits.clients": {"counted_client"},
    "accounts.limits.middleware": {"in_words"},
    "accounts.models": {"AbstractAccount", "account_model", "User"},
    "accounts.pages": {"keptforms"},
    "accounts.pages.account": {"AccountDeleteView", "switch_language"},
    "accounts.pages.base": {
        "DOWNLOAD",
        "FormPageMixin",
        "KeepFormMixin",
        "signed_in",
        "SignedInFormMixin",
    },
    "accounts.pages.signin": {"FreshSignInMixin"},
    "accounts.personal_data": {"account_of", "by_stored_name", "exported_by_apps", "sessions_of"},
    "accounts.services": {"find_user"},
    "accounts.sessions": {"visitor"},
    "accounts.sessions.middleware": {"read_with_visitor"},
    "accounts.sessions.visitor": {"address", "is_fresh", "known_account"},
    "accounts.signals": {"account_deleting", "value_taken"},
    "dynamo.admin.actions": {"REASON"},
    "dynamo.admin.models": {"list_entries", "LogEntry", "month_of"},
    "dynamo.auth.addresses": {"clean_email"},
    "dynamo.auth.usernames": {"as_uuid"},
    "dynamo.cache": {"DynamoCache"},
    "dynamo.client": {"bulk", "connections", "credentials", "endpoints"},
    "dynamo.client.bulk": {"query_pages"},
    "dynamo.client.plain": {"PlainModel"},
    "dynamo.client.retries": {"cancellation_codes", "outcome_of", "pause_seconds"},
    "dynamo.client.sending": {"read_item"},
    "dynamo.client.tally": {"collect", "consumed_units", "counted_on", "table_names", "Tally"},
    "dynamo.client.writes": {"Refusal", "Write"},
    "dynamo.management.commands.cloudformation": {"parts_of_apps", "template"},
    "dynamo.management.progress": {"progress_bars", "replacing"},
    "dynamo.model.unique": {"SEPARATOR"},
    "dynamo.runtime.deadline": {"at_most", "uncounted", "uncounted_seconds", "within"},
    "dynamo.runtime.gates": {
        "Gate",
        "GateFull",
        "in_turn",
        "let_pages_go_first",
        "TooManyPages",
        "turn_passed_on",
    },
    "dynamo.runtime.processes": {"begin_process", "PerProcess"},
    "dynamo.runtime.terminal": {"printable"},
    "dynamo.runtime.threads": {"together"},
    "dynamo.tables.definitions": {"all_tables"},
    "dynamo.tables.findings": {"confirmed", "Findings", "Progress", "scanned", "Spool", "unseen"},
    "dynamo.tables.guards": {"check_guards", "is_owner"},
    "dynamo.transactions": {"READ_TOGETHER", "read_together"},
    "dynamo.wire.attributes": {"FormAttribute"},
    "dynamo.wire.types": {"Item", "Request", "Typed"},
    "dynamo.wire.updates": {"Update"},
    "dynamo.wire.values": {"as_typed", "text_of"},
    "locks": {"registry"},
    "locks.registry": {"all_locks", "BREAK_ATTEMPTS", "break_lock", "LockView", "State"},
    "sequences.check": {"last_of", "SeriesReport"},
    "sequences.models": {"Counter", "is_counter_of_series", "REQUEST_PREFIX"},
    "uploads": {"s3"},
    "uploads.models": {"DONE", "UPLOADING", "UploadItem"},
    "uploads.s3": {"ObjectExists", "StorageFailed", "UploadGone"},
    "outbox.admin": {"TaskAdmin"},
    "outbox.framework": {"TaskException", "TaskResultDoesNotExist"},
    "outbox.models": {"TaskItem"},
    "outbox.signals": {"task_ran", "tasks_looked_for"},
    "uploads.signals": {"file_done"},
}


def imported(file: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import from the library."""
    for statement in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            names = [(statement.module, name.name) for name in statement.names]
        elif isinstance(statement, ast.Import):
            names = [(name.name, "") for name in statement.names]
        else:
            continue
        yield from (name for name in names if name[0].partition(".")[0] in LIBRARY)


@cache
def of_packages(folders: tuple[str, ...]) -> set[tuple[str, str]]:
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return {item for file in files for item in imported(file)}


def is_stable(module: str, name: str) -> bool:
    """Whether the page names the module, and the name is one of its public ones."""
    if f"`{module}.{name}" in STABLE:
        return True
    public = getattr(import_module(module), "__all__", None)
    is_public = not name.startswith("_") if public is None else name in public
    return is_public and (f"`{module}`" in STABLE or f"`{module}." in STABLE)


def test_the_examples_import_only_what_is_stable() -> None:
    used = of_packages(("examples",))

    assert used
    assert {item for item in used if not is_stable(*item)} == set()


def test_the_site_imports_only_what_is_stable_and_the_building_blocks() -> None:
    blocks = {(module, name) for module, names in BUILDING_BLOCKS.items() for name in names}

    assert {item for item in of_packages(SITE) if not is_stable(*item)} <= blocks
    assert blocks <= of_packages(SITE)


def test_importing_a_package_of_the_library_loads_nothing_else() -> None:
    program = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
before = {{*sys.modules}}
import {", ".join(LIBRARY)}
print(*sorted({{*sys.modules}} - before))
"""
    command = [sys.executable, "-I", "-S", "-c", program]

    assert subprocess.check_output(command, text=True).split() == sorted(LIBRARY)
