"""Prints the progress of a run and its summary."""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping

from tests.faults.random_proxy import LATEST_SECONDS
from tests.torture.findings import Finding
from tests.torture.result import Result
from tests.torture.run import Run

EVERY_SECONDS = 10.0
#: Shown of each rule: a rule that is broken is mostly broken often.
MOST_FINDINGS = 3


class Progress:
    """Prints a line every few seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = time.monotonic()
        self._next = 0.0

    def __call__(self, run: Run) -> None:
        """Print a line, if it is time for one."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_SECONDS
        happened = run.happened.counts
        say(
            f"{now - self._began:5.0f} of {self._seconds:.0f} s: "
            f"{run.faults.requests + run.s3_faults.requests:,} requests, "
            f"{faults_of(run).total():,} faults, "
            f"{sum(count for name, count in happened.items() if 'killed' in name):,} kills",
            sys.stderr,
        )


def faults_of(run: Run) -> Counter[str]:
    """How often each fault was injected."""
    s3 = {f"{name} (S3)": count for name, count in run.s3_faults.counts.items()}
    return run.faults.counts + Counter(s3)


def summary(run: Run, result: Result, seconds: float) -> str:
    """Calls by kind and outcome, faults and kills, and the CPU that was used."""
    outcomes = result.outcomes
    kinds = sorted({do for do, _outcome in outcomes})
    lines = [f"{'operations':<16}{'ok':>9}{'refused':>9}{'unknown':>9}"]
    for kind in kinds:
        counts = (outcomes[kind, outcome] for outcome in ("ok", "refused", "unknown"))
        lines.append(f"{kind:<16}" + "".join(f"{count:>9,}" for count in counts))
    lines.append(f"{'in all':<16}{outcomes.total():>9,}")
    faults = faults_of(run)
    requests = run.faults.requests + run.s3_faults.requests
    lines += ["", f"{faults.total():,} faults in {requests:,} requests", *_table(faults)]
    lines += ["", "processes and engines", *_table(run.happened.counts)]
    lines += ["", *_cpu(run, seconds)]
    lines.append(f"slowest request {run.latest_seconds:.1f} s")
    if run.latest_seconds > LATEST_SECONDS:
        lines.append("Too slow: a call without an answer may have happened later than is assumed.")
    return "\n".join(lines)


def findings(result: Result) -> str:
    """The first findings of each rule, the shortest first, with the history that shows them."""
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        by_rule[finding.rule].append(finding)
    shown: list[str] = []
    for rule, found in by_rule.items():
        shown += map(str, sorted(found, key=lambda each: len(each.lines))[:MOST_FINDINGS])
        if len(found) > MOST_FINDINGS:
            shown.append(f"{rule}: {len(found) - MOST_FINDINGS} more")
    return "\n\n".join(shown)


def _table(counts: Mapping[str, int]) -> list[str]:
    return [f"    {name:<30}{counts[name]:>9,}" for name in sorted(counts)]


def _cpu(run: Run, seconds: float) -> list[str]:
    used = {
        "clients": run.cpu_seconds("w"),
        "servers": run.cpu_seconds("s"),
        "proxies and checkers": _seconds_of(resource.RUSAGE_SELF),
        "engines": _seconds_of(resource.RUSAGE_CHILDREN),
    }
    table = [f"    {name:<30}{each:>9.0f} s" for name, each in used.items()]
    return [f"CPU: {sum(used.values()):.0f} s in {seconds:.0f} s", *table]


def _seconds_of(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def say(text: str, stream: object = None) -> None:
    """Print a line at once."""
    out = stream or sys.stdout
    out.write(f"{text}\n")  # type: ignore[attr-defined]
    out.flush()  # type: ignore[attr-defined]
