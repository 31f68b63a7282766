"""Reports that read whole tables: the command `storereport` stores them, pages show the last one.

A report is stored by one conditional write after its work is done, so a command that is killed
before leaves the last report as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.timesince import timesince
from django.utils.translation import gettext_lazy as _

from dynamo import Transaction
from dynamo.extending import Progress, read_together
from staff import summaries
from staff.exceptions import NewerReport
from staff.models import Report
from staff.summaries import Result

#: With a report every day, an older one means that the command does not run.
OLD_AFTER = timedelta(days=2)

#: A stored report from so far in the future was stored under a wrong clock.
CLOCKS_DIFFER_BY = timedelta(days=1)


@dataclass(frozen=True)
class ReportKind:
    """A kind of report: its name in the command, and its key in the table and in URLs."""

    name: str
    key: str
    title: Any
    description: Any
    work: Callable[[Progress], Result]
    schedule: str


KINDS = {
    kind.name: kind
    for kind in (
        ReportKind(
            "statistics",
            "survey",
            _("Statistics"),
            _("Counts accounts, sign-ups, counters, locks and uploads."),
            summaries.statistics,
            "17 3 * * *",
        ),
        ReportKind(
            "guards",
            "checkguards",
            _("Guard check"),
            _("Compares every account with the guard items of its username and email address."),
            summaries.guards,
            "27 3 * * *",
        ),
        ReportKind(
            "invoices",
            "checkinvoices",
            _("Invoice check"),
            _("Looks for invoice numbers that are missing, duplicate, or beyond their counter."),
            summaries.invoices,
            "37 3 * * *",
        ),
    )
}


BY_KEY = {kind.key: kind for kind in KINDS.values()}


def make_report(kind: ReportKind, *, by: str, progress: Progress) -> Report:
    """Do the work; `by` says which user and host do it. Costs and raises as `kind.work`."""
    started_at = _now()
    result = json.dumps(kind.work(progress), ensure_ascii=False)
    return Report(kind.key, result=result, started_at=started_at, ended_at=_now(), stored_by=by)


def _now() -> str:
    # Of one length, as texts are compared.
    return datetime.now(UTC).isoformat(timespec="microseconds")


def store(report: Report) -> None:
    """Replace the last report, unless the work of that one started later. Costs 1 request.

    Raises:
        NewerReport: it did; `report` was not stored.
    """
    wrong_clock = (datetime.now(UTC) + CLOCKS_DIFFER_BY).isoformat()
    older = (
        Report.started_at.does_not_exist()
        | (Report.started_at < report.started_at)
        | (Report.started_at > wrong_clock)
    )
    with Transaction() as write:
        write.put(report, older, otherwise=NewerReport(str(BY_KEY[report.kind].title)))


@dataclass(frozen=True)
class LastReport:
    """The last report of a kind; `result` is None if there is none."""

    kind: ReportKind
    result: Result | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    stored_by: str = ""

    @property
    def age(self) -> str:
        """How long ago it was stored, in words."""
        return timesince(self.ended_at, depth=1) if self.ended_at else "?"

    @property
    def is_old(self) -> bool:
        return self.ended_at is not None and datetime.now(UTC) - self.ended_at > OLD_AFTER

    @property
    def seconds(self) -> float:
        """How long the work took."""
        return _seconds_between(self.started_at, self.ended_at)

    @property
    def is_wrong(self) -> bool:
        """Whether a check found something."""
        return bool(self.result and (self.result.get("wrong") or self.result.get("unusable")))

    @property
    def newest(self) -> list[str]:
        """In statistics: the keys of the newest accounts. A report of an older version has none."""
        return list(self.result["accounts"].get("newest", [])) if self.result else []

    @property
    def signups(self) -> dict[str, Any]:
        """In statistics: pairs of a day and its sign-ups, their largest number and their sum."""
        days = self.result["accounts"]["days"] if self.result else []
        counts = [count for _day, count in days]
        return {"days": days, "top": max(counts, default=0), "total": sum(counts)}

    @property
    def locks_shown(self) -> list[Result]:
        """In statistics: locks, each with the age of its renewal then, in seconds."""
        return [
            lock | {"age": _seconds_between(lock["renewed_at"], self.ended_at)}
            for lock in (self.result["locks"]["shown"] if self.result else [])
        ]


def last_reports(*kinds: ReportKind) -> list[LastReport]:
    """Costs 1 request, and 2 read units per 4 KB of each report."""
    items = read_together([Report(kind.key) for kind in kinds])
    return [
        _last_report(kind, Report.from_raw_data(item)) if item else LastReport(kind)
        for kind, item in zip(kinds, items, strict=True)
    ]


def _last_report(kind: ReportKind, report: Report) -> LastReport:
    try:
        result = json.loads(report.result or "null", object_hook=_with_times)
    except ValueError:
        result = None
    # Earlier versions also stored the progress of a run, without a result.
    times = _time(report.started_at), _time(report.ended_at)
    return LastReport(kind, result or None, *times, report.stored_by or "")


def _with_times(found: Result) -> Result:
    return found | {name: _time(found[name]) for name in ("renewed_at", "at") if name in found}


def _time(text: str | None) -> datetime | None:
    """None also for a text that is not a time."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _seconds_between(first: datetime | None, second: datetime | None) -> float:
    """At least 0, as the times may be of clocks that differ."""
    return max(0.0, (second - first).total_seconds()) if first and second else 0.0
