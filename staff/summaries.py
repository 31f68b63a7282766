"""The checks of guards and invoices, each with its findings as JSON of bounded size.

A report is one item, so it keeps the first `SHOWN` findings of each kind and counts the others.
The commands `checkguards` and `checkinvoices` list all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from accounts.models import User
from dynamo.findings import Findings
from dynamo.guardcheck import check_guards
from dynamo.guardstate import KINDS
from invoices.records import check_invoices
from sequences.seriesreport import SeriesReport

Progress = Callable[[int], object]
"""Called with how many more items were read."""

Result = dict[str, Any]

SHOWN = 50
#: For the numbers that one series lacks.
SHOWN_NUMBERS = 10
TEXT_MAX_LENGTH = 200


def guards(progress: Progress) -> Result:
    """Costs and raises as `dynamo.guardcheck.check_guards`; repairs nothing."""

    def count_items(_what: str, count: int) -> None:
        progress(count)

    with check_guards(
        User.unique, oldest_by=User.date_joined.attr_name, progress=count_items
    ) as report:
        findings = {}
        for kind in KINDS:
            first = islice(report.findings(kind), SHOWN)
            shown = [{"pk": cut(pk), "key": cut(key)} for pk, key, _outcome in first]
            findings[kind] = {"shown": shown, "more": report.count(kind) - len(shown)}
        pk, attribute = report.unusable_example or ("", "")
        return {
            "users": report.users,
            "guards": report.guards,
            "wrong": report.still_wrong,
            "findings": findings,
            "unusable": report.unusable,
            "unusable_example": {"pk": cut(pk), "attribute": attribute} if pk else None,
        }


def invoices(progress: Progress) -> Result:
    """Costs and raises as `invoices.records.check_invoices`."""
    series = issued = voided = wrong = 0
    damaged: list[Result] = []
    for report in check_invoices(progress=progress):
        series += 1
        voided += report.counts["voided"]
        issued += report.items - report.counts["voided"]
        if not report.is_sound:
            wrong += 1
            if len(damaged) < SHOWN:
                damaged.append(_damage(report))
    return {
        "series": series,
        "issued": issued,
        "voided": voided,
        "wrong": wrong,
        "damaged": {"shown": damaged, "more": wrong - len(damaged)},
    }


def _damage(report: SeriesReport) -> Result:
    kinds: dict[str, Findings[Any]] = {
        "gaps": report.gaps,
        "duplicates": report.duplicates,
        "beyond": report.beyond,
        "guards": report.guards,
    }
    return {
        "series": cut(report.series),
        "last": report.last,
        **{
            kind: {
                "shown": [cut(str(each)) for each in found.listed[:SHOWN_NUMBERS]],
                "more": max(0, found.count - SHOWN_NUMBERS),
            }
            for kind, found in kinds.items()
        },
    }


def cut(text: str) -> str:
    """`text`, or its beginning."""
    return text if len(text) <= TEXT_MAX_LENGTH else f"{text[: TEXT_MAX_LENGTH - 1]}…"
