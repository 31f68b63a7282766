"""Checks the history of a run and what is stored in the end."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accounts.models import User
from dynamo._internal import bulk
from dynamo.admin import LogEntry
from invoices.models import InvoiceItem
from tests.torture import history
from tests.torture.checkers import accounts, invoices, locks, uploads
from tests.torture.checkers.accounts import Account
from tests.torture.checkers.invoices import Stored
from tests.torture.clients.inspector import wrong_guards, wrong_series
from tests.torture.clients.uploads import BUCKET, PREFIX, sources, upload
from tests.torture.findings import Finding, of_calls
from tests.torture.history import Call, Journal
from tests.torture.resource import Resource
from tests.torture.run import Run
from uploads.check import check_uploads
from uploads.sources import Destination

_USER = ("pk", "userName", "email", "version", "fullName")
_INVOICE = ("series", "number", "requestId", "customerName", "voidReason", "owner")


@dataclass(frozen=True)
class Result:
    """The calls of a run, and what is wrong."""

    calls: list[Call]
    findings: list[Finding]

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """How many calls of each kind had each outcome; calls by pages apart."""
        return Counter(
            (f"{call.do} page" if "page" in call.asked else call.do, call.outcome)
            for call in self.calls
        )


def check(run: Run) -> Result:
    """Check a run that has ended."""
    place = run.options.place
    over = time.monotonic()
    upload(Journal(place.histories / "last.jsonl"), place.uploads, _batches(place.uploads))
    calls = history.read(place.histories, run.happened.ends, over)
    findings = [
        *_crashes(calls),
        *accounts.check(
            calls, stored_accounts(), engine_kills=run.happened.engine_kills, logged=_logged()
        ),
        *invoices.check(calls, stored_invoices()),
        *locks.check(calls, _served(place.resources)),
        *_uploads(run, calls),
        *_inspections(calls),
        *_by_the_sites_own_checks(),
    ]
    return Result(calls, findings)


def _batches(root: Path) -> list[Path]:
    return sorted(root.glob("batch-*"))


def _crashes(calls: list[Call]) -> list[Finding]:
    return [
        of_calls("crash", call.answer["crashed"], [call])
        for call in calls
        if "crashed" in call.answer
    ]


def _inspections(calls: list[Call]) -> list[Finding]:
    return [
        of_calls("inspection", "a check of the site reported damage that is not there", [call])
        for call in calls
        if call.do == "inspect" and call.answer.get("wrong")
    ]


def _by_the_sites_own_checks() -> list[Finding]:
    report = check_uploads(Destination(BUCKET, PREFIX))
    found = {
        "checkguards": wrong_guards(),
        "checkinvoices": wrong_series(),
        "checkuploads": [] if report.is_sound else [str(report)],
    }
    return [Finding(name, each) for name, wrong in found.items() for each in wrong]


def stored_accounts() -> dict[str, Account]:
    return {
        item["pk"]["S"]: Account(
            item["userName"]["S"],
            item["email"]["S"],
            int(item["version"]["N"]),
            item.get("fullName", {}).get("S", ""),
        )
        for item in _items(User.table(), _USER)
        if "#" not in item["pk"]["S"]
    }


def _logged() -> list[str]:
    """The reasons in the audit log. Each entry on an item has a second one, of its month."""
    return [
        item["reason"]["S"]
        for item in _items(LogEntry.table(), ("journal", "reason"))
        if item["journal"]["S"].startswith("on#")
    ]


def stored_invoices() -> dict[str, dict[int, Stored]]:
    found: dict[str, dict[int, Stored]] = defaultdict(dict)
    for item in _items(InvoiceItem.table(), _INVOICE):
        if "owner" in item:
            continue
        account = item["series"]["S"].rpartition("#")[0]
        found[account][int(item["number"]["N"])] = Stored(
            item["requestId"]["S"],
            item["customerName"]["S"],
            item.get("voidReason", {}).get("S", ""),
        )
    return found


def _items(table: str, attributes: tuple[str, ...]) -> list[dict[str, Any]]:
    return [item for page in bulk.pages(table, attributes) for item in page]


def _served(resources: Path) -> dict[str, list[locks.Served]]:
    return {file.name: Resource(file).served() for file in resources.iterdir()}


def _uploads(run: Run, calls: list[Call]) -> list[Finding]:
    root = run.options.place.uploads
    files = {
        source.key: _sha256(Path(source.path).read_bytes())
        for source in sources(root, _batches(root))
    }
    objects = {
        found["Key"]: _sha256(run.s3.get_object(Bucket=BUCKET, Key=found["Key"])["Body"].read())
        for page in run.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        for found in page.get("Contents", ())
    }
    return uploads.check(calls, files=files, objects=objects, times_stored=run.s3_proxy.stored)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
