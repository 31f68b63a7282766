"""How commands check series and show the reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.findings import Findings
from sequences.management.base import SequenceCommand
from sequences.seriesreport import SeriesReport

#: How many findings of a kind the text for people names.
SHOWN = 10


class SeriesCheckCommand(SequenceCommand):
    """Prints a report for each series, and exits 1 if something is wrong. Subclasses say which."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the form of the answer."""
        parser.add_argument("--json", action="store_true", help="one JSON object per series")

    def reports(self, options: dict[str, Any]) -> Iterator[SeriesReport]:
        """The reports to print. Subclasses implement it."""
        raise CommandError("This command does not check anything.")

    def counts(self, report: SeriesReport) -> dict[str, int]:
        """How the items of a series are counted, by the words to print."""
        return {"items": report.items}

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, and print each report as soon as it is known."""
        wrong = 0
        for report in self.reports(options):
            self.stdout.write((self._as_json if options["json"] else self._as_line)(report))
            wrong += not report.is_sound
        if wrong:
            raise CommandError(f"{wrong} series {'is' if wrong == 1 else 'are'} damaged.")

    def _as_json(self, report: SeriesReport) -> str:
        """The object of the contract; other findings, and how many more, only if there are any."""
        shown: dict[str, Any] = {
            "series": report.series,
            "last": report.last,
            **self.counts(report),
            "gaps": report.gaps.listed,
            "duplicates": report.duplicates.listed,
        }
        others: dict[str, Findings[Any]] = {"beyond": report.beyond, "guards": report.guards}
        shown |= {name: found.listed for name, found in others.items() if found}
        kinds: dict[str, Findings[Any]] = {
            "gaps": report.gaps,
            "duplicates": report.duplicates,
            **others,
        }
        more = {name: found.more for name, found in kinds.items() if found.more}
        return json.dumps(shown | ({"more": more} if more else {}), ensure_ascii=False)

    def _as_line(self, report: SeriesReport) -> str:
        last = "no number in its counter" if report.last is None else f"last {report.last}"
        counts = ", ".join(f"{count} {word}" for word, count in self.counts(report).items())
        parts = [f"{report.series}  {last}, {counts}"]
        for what, found in (
            ("gaps", report.gaps),
            ("duplicates", report.duplicates),
            ("beyond the counter", report.beyond),
            ("wrong guard items", report.guards),
        ):
            if found:
                parts.append(f"{what}: {_named(found)}")
        return "; ".join(parts)


def _named(found: Findings[Any]) -> str:
    more = found.count - SHOWN
    named = ", ".join(map(str, found.listed[:SHOWN]))
    return f"{named} and {more:,} more" if more > 0 else named
