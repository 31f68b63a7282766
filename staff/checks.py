"""What the runs do: each reads whole tables, says how far it is, and returns what it found.

A result is JSON of bounded size, as it is kept in one item: of each kind of finding the first
`SHOWN`, and how many more there are. The command shows all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from accounts.models import User
from dynamo.findings import Findings
from dynamo.guardcheck import check_guards
from dynamo.guardstate import KINDS
from invoices.check import check_invoices
from sequences.seriesreport import SeriesReport

Progress = Callable[[int], None]
"""Told how many more items were looked at."""

Result = dict[str, Any]

SHOWN = 50
#: Of the numbers that one series lacks.
SHOWN_NUMBERS = 10
TEXT_MAX_LENGTH = 200


def guards(progress: Progress) -> Result:
    """Whether every account has its guards and every guard its account; repairs nothing.

    Costs and raises as `dynamo.guardcheck.check_guards`.
    """
    with check_guards(
        User.unique,
        oldest_by=User.date_joined.attr_name,
        progress=lambda _what, count: progress(count),
    ) as report:
        found = {
            kind: bounded(
                {"pk": cut(pk), "key": cut(key)} for pk, key, _outcome in report.findings(kind)
            )
            for kind in KINDS
        }
        example = report.unusable_example
        return {
            "users": report.users,
            "guards": report.guards,
            "wrong": report.still_wrong,
            "findings": {
                kind: {"shown": shown, "more": report.count(kind) - len(shown)}
                for kind, shown in found.items()
            },
            "unusable": report.unusable,
            "unusable_example": {"pk": cut(example[0]), "attribute": example[1]}
            if example
            else None,
        }


def invoices(progress: Progress) -> Result:
    """Whether every series has its numbers without a gap, each once.

    Costs and raises as `invoices.check.check_invoices`.
    """
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


def bounded(findings: Iterable[Result]) -> list[Result]:
    """The first `SHOWN`; the others are not read."""
    return [each for _number, each in zip(range(SHOWN), findings, strict=False)]


def cut(text: str) -> str:
    """`text`, or its beginning."""
    return text if len(text) <= TEXT_MAX_LENGTH else f"{text[: TEXT_MAX_LENGTH - 1]}…"
