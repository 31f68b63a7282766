"""The base of commands that check series, in this app and in the apps that use it."""

import json
from collections.abc import Iterator

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand
from dynamo.runtime.terminal import listed
from sequences.check import SeriesReport

_IN_WORDS = {"beyond": "beyond the counter", "guards": "wrong guard items"}


class SeriesCheckCommand(DynamoCommand):
    """Prints a report for each series and exits 1 if one is damaged. Subclasses choose the series.

    With `--json`, it prints one object per series. `beyond`, `guards`, `more` and the findings of
    further checks are included only if something was found.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--json`."""
        parser.add_argument("--json", action="store_true", help="print one JSON object per series")

    def reports(self, options: dict[str, object]) -> Iterator[SeriesReport]:
        """The reports to print. Subclasses implement this method."""
        raise NotImplementedError

    def counts(self, report: SeriesReport) -> dict[str, int]:
        """The counts to print, by their words."""
        return {"items": report.items}

    def handle(self, *args: object, **options: object) -> None:
        """Check, and print each report as soon as it is complete."""
        damaged = 0
        for report in self.reports(options):
            self.stdout.write((self._as_json if options["json"] else self._as_line)(report))
            damaged += not report.is_sound
        if damaged:
            raise CommandError(f"{damaged} series {'is' if damaged == 1 else 'are'} damaged.")

    def _as_json(self, report: SeriesReport) -> str:
        always = ("gaps", "duplicates")
        found = {
            name: finding for name, finding in report.findings.items() if finding or name in always
        }
        shown: dict[str, object] = {"series": report.series, "last": report.last}
        if report.first != 1:
            shown["first"] = report.first
        shown |= self.counts(report) | {name: value.listed for name, value in found.items()}
        more = {name: value.more for name, value in found.items() if value.more}
        return json.dumps(shown | ({"more": more} if more else {}), ensure_ascii=False)

    def _as_line(self, report: SeriesReport) -> str:
        last = "no number in its counter" if report.last is None else f"last {report.last}"
        counts = ", ".join(_counted(*item) for item in self.counts(report).items())
        parts = [f"{report.series}  {last}, {counts}"]
        for name, found in report.findings.items():
            if found:
                parts.append(f"{_IN_WORDS.get(name, name)}: {listed(found.listed, found.more)}")
        return "; ".join(parts)


def _counted(word: str, count: int) -> str:
    return f"{count} {word.removesuffix('s') if count == 1 else word}"
