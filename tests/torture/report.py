"""What a person sees of a run: a line now and then, and the summary."""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping

from tests.faults.storm import LATEST_SECONDS
from tests.torture.bench import Bench
from tests.torture.findings import Finding
from tests.torture.verdict import Verdict

EVERY_SECONDS = 10.0
#: Of each rule; one broken rule is mostly broken often.
MOST_FINDINGS = 3


class Progress:
    """Says every few seconds that the run goes on."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = time.monotonic()
        self._next = 0.0

    def __call__(self, bench: Bench) -> None:
        """A line, if it is time for one."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_SECONDS
        happened = bench.happened.counts
        say(
            f"{now - self._began:5.0f} of {self._seconds:.0f} s: "
            f"{bench.weather.requests + bench.s3_weather.requests:,} requests, "
            f"{faults_of(bench).total():,} faults, "
            f"{sum(count for name, count in happened.items() if 'killed' in name):,} kills",
            sys.stderr,
        )


def faults_of(bench: Bench) -> Counter[str]:
    """How often each fault was injected."""
    s3 = {f"{name} (S3)": count for name, count in bench.s3_weather.counts.items()}
    return bench.weather.counts + Counter(s3)


def summary(bench: Bench, verdict: Verdict, seconds: float) -> str:
    """Operations by kind and outcome, faults and kills, and what it took."""
    outcomes = verdict.outcomes
    kinds = sorted({do for do, _outcome in outcomes})
    lines = [f"{'operations':<16}{'ok':>9}{'refused':>9}{'unknown':>9}"]
    for kind in kinds:
        counts = (outcomes[kind, outcome] for outcome in ("ok", "refused", "unknown"))
        lines.append(f"{kind:<16}" + "".join(f"{count:>9,}" for count in counts))
    lines.append(f"{'in all':<16}{outcomes.total():>9,}")
    faults = faults_of(bench)
    requests = bench.weather.requests + bench.s3_weather.requests
    lines += ["", f"{faults.total():,} faults in {requests:,} requests", *_table(faults)]
    lines += ["", "processes and engines", *_table(bench.happened.counts)]
    lines += ["", *_cpu(bench, seconds)]
    lines.append(f"slowest request {bench.latest_seconds:.1f} s")
    if bench.latest_seconds > LATEST_SECONDS:
        lines.append("That is too slow: what had no answer may have happened later than is judged.")
    return "\n".join(lines)


def findings(verdict: Verdict) -> str:
    """The first findings of each rule, the shortest first, with the history that shows them."""
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in verdict.findings:
        by_rule[finding.rule].append(finding)
    shown: list[str] = []
    for rule, found in by_rule.items():
        shown += map(str, sorted(found, key=lambda each: len(each.lines))[:MOST_FINDINGS])
        if len(found) > MOST_FINDINGS:
            shown.append(f"{rule}: {len(found) - MOST_FINDINGS} more")
    return "\n\n".join(shown)


def _table(counts: Mapping[str, int]) -> list[str]:
    return [f"    {name:<30}{counts[name]:>9,}" for name in sorted(counts)]


def _cpu(bench: Bench, seconds: float) -> list[str]:
    used = {
        "clients": bench.cpu_seconds("w"),
        "servers": bench.cpu_seconds("s"),
        "proxies and judges": _seconds_of(resource.RUSAGE_SELF),
        # Which have ended.
        "engines": _seconds_of(resource.RUSAGE_CHILDREN),
    }
    table = [f"    {name:<30}{each:>9.0f} s" for name, each in used.items()]
    return [f"CPU: {sum(used.values()):.0f} s in {seconds:.0f} s", *table]


def _seconds_of(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def say(text: str, stream: object = None) -> None:
    """One line, at once."""
    out = stream or sys.stdout
    out.write(f"{text}\n")  # type: ignore[attr-defined]
    out.flush()  # type: ignore[attr-defined]
