"""What pages show of runs: how the latest of a kind stands, and the latest result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from django.utils.translation import gettext_lazy as _

from dynamo.models import Item
from dynamo.transaction import read_together
from locks.models import LockItem
from locks.registry import LockView, State, view_of
from staff.models import Report
from staff.runs import KINDS, Kind

GUARD_FINDINGS: dict[str, tuple[Any, Any]] = {
    "missing": (_("Missing"), _("An account has a value without a guard.")),
    "orphaned": (_("Orphaned"), _("A guard keeps a value that nobody has or has reserved.")),
    "foreign": (_("Another’s"), _("An account has a value whose guard is another account’s.")),
}


class Standing(Enum):
    """How the latest run of a kind stands.

    ENDED: it holds its lock no more, and left no result: its process ended, or the lock was broken.
    SILENT: it holds its lock, but has not renewed it for a whole lease, by the clocks.
    """

    NEVER = "never"
    RUNNING = "running"
    SILENT = "silent"
    ENDED = "ended"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True)
class ReportView:
    """The latest run of a kind, and the latest result (None where there was none yet)."""

    kind: Kind
    standing: Standing
    report: Report | None
    renewed_at: datetime | None
    result: dict[str, Any] | None

    @property
    def is_running(self) -> bool:
        """Whether it runs, as far as is known."""
        return self.standing is Standing.RUNNING

    @property
    def started_at(self) -> datetime | None:
        """When the latest run began."""
        return self._time("started_at")

    @property
    def result_ended_at(self) -> datetime | None:
        """When the run of the result ended."""
        return self._time("result_ended_at")

    @property
    def result_seconds(self) -> float:
        """How long the run of the result took."""
        began, ended = self._time("result_started_at"), self.result_ended_at
        return (ended - began).total_seconds() if began and ended else 0.0

    def _time(self, name: str) -> datetime | None:
        return _moment(getattr(self.report, name, None))

    @property
    def is_wrong(self) -> bool:
        """Of a check: whether it found something."""
        result = self.result or {}
        return bool(result.get("wrong") or result.get("unusable"))

    @property
    def locks_shown(self) -> list[dict[str, Any]]:
        """Of a survey: the locks that somebody had."""
        shown = self.result["locks"]["shown"] if self.result else []
        return [
            each | {"renewed_at": at, "age": self._age(at)}
            for each, at in ((each, _moment(each["renewed_at"])) for each in shown)
        ]

    def _age(self, at: datetime | None) -> float:
        """How many seconds before the end of the run of the result it was."""
        ended = self.result_ended_at
        return max(0.0, (ended - at).total_seconds()) if ended and at else 0.0

    @property
    def oldest_unfinished(self) -> dict[str, Any] | None:
        """Of a survey: the upload that has been unfinished for longest."""
        found = self.result["uploads"]["oldest_unfinished"] if self.result else None
        return found and found | {"at": _moment(found["at"])}

    @property
    def guard_findings(self) -> list[dict[str, Any]]:
        """Of a check of guards: what is wrong, each kind with its title."""
        findings = self.result["findings"] if self.result else {}
        return [
            findings[kind] | {"title": title, "what": what}
            for kind, (title, what) in GUARD_FINDINGS.items()
            if kind in findings
        ]


def reports_of(*names: str) -> list[ReportView]:
    """How the runs of these kinds stand, all at one instant.

    Costs 1 request, and for each kind 2 read units for its lock and 2 per 4 KB of its report.
    """
    kinds = [KINDS[name] for name in names]
    items = read_together(
        [item for kind in kinds for item in (Report(kind.name), LockItem(kind.lock))]
    )
    return [
        _view(kind, report, lock)
        for kind, report, lock in zip(kinds, items[::2], items[1::2], strict=True)
    ]


def _view(kind: Kind, item: Item | None, lock_item: Item | None) -> ReportView:
    report = Report.from_raw_data(item) if item else None
    lock = view_of(lock_item) if lock_item else None
    result = json.loads(report.result) if report and report.result else None
    return ReportView(
        kind, _standing(report, lock), report, lock.renewed_at if lock else None, result
    )


def _standing(report: Report | None, lock: LockView | None) -> Standing:
    if report is None or report.state is None:
        return Standing.NEVER
    if report.state in {"done", "failed"}:
        return Standing(report.state)
    if lock is None or lock.state is State.RELEASED or lock.fence != report.fence:
        return Standing.ENDED
    return Standing.SILENT if lock.is_silent(datetime.now(UTC)) else Standing.RUNNING


def _moment(text: str | None) -> datetime | None:
    """The time as stored; None where there is none, or a text that is none."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
