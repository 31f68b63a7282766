"""`storereport`: check the site, or count the stored items, and store the report for staff."""

import getpass
import json
import os
import socket
import sqlite3
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand
from dynamo.management.progress import progress_bars
from staff.reports import KINDS, make_report, store


class Command(DynamoCommand):
    help = (
        "Check the guard items or the invoices, or count what is stored, and store the report, "
        "which the staff pages show. Exits 0 once the report is stored, whatever it found; exits 1 "
        "if it is not stored. Safe while the site is used. "
        "Reads whole tables: 1 read unit per 4 KB of everything in them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("report", choices=sorted(KINDS), help="which report")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args: object, **options: Any) -> None:
        kind = KINDS[options["report"]]
        try:
            with progress_bars(shown=not options["json"]) as progress:
                report = make_report(kind, by=_user_and_host(), progress=progress)
            store(report)
        except (OSError, sqlite3.Error) as error:
            # The check of guard items sorts its data on disk with SQLite.
            raise CommandError(f"The report was not made: {error}") from error
        result = json.loads(report.result)
        if options["json"]:
            answer = {
                "report": kind.name,
                "startedAt": report.started_at,
                "endedAt": report.ended_at,
                "storedBy": report.stored_by,
                "result": result,
            }
            self.stdout.write(json.dumps(answer, ensure_ascii=False))
        else:
            found = result.get("wrong", 0) + result.get("unusable", 0)
            counted = "" if kind.name == "statistics" else f" Problems found: {found}."
            self.tell(f"The report is stored.{counted}")


def _user_and_host() -> str:
    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):
        # A container's user may have no name.
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
