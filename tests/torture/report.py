"""The summary of a run, and what it found."""

from collections import Counter, defaultdict

from tests.faults.random_proxy import LATEST_SECONDS
from tests.torture.findings import Finding
from tests.torture.history import Call
from tests.torture.run import Run

#: Shown of each rule: a rule that is broken is mostly broken often.
MOST_FINDINGS = 3


def summary(run: Run, calls: list[Call]) -> str:
    """Calls by kind and outcome, those by pages apart, and faults and kills."""
    ends = ("ok", "refused", "unknown")
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for call in calls:
        kinds[f"{call.do} page" if "page" in call.asked else call.do][call.outcome] += 1
    lines = [f"{'operations':<16}" + "".join(f"{end:>9}" for end in ends)]
    for kind, counts in sorted(kinds.items()):
        lines.append(f"{kind:<16}" + "".join(f"{counts[end]:>9,}" for end in ends))
    lines.append(f"{'in all':<16}{len(calls):>9,}")
    lines += [
        "",
        f"{run.faults.counts.total():,} faults in {run.faults.requests:,} requests",
        *_table(run.faults.counts),
    ]
    lines += ["", "processes and engines", *_table(run.counts)]
    slowest = run.proxy.latest_seconds
    lines += ["", f"slowest request {slowest:.1f} s"]
    if slowest > LATEST_SECONDS:
        lines.append("Too slow: a call without an answer may have happened later than is assumed.")
    return "\n".join(lines)


def _table(counts: Counter[str]) -> list[str]:
    return [f"    {name:<30}{counts[name]:>9,}" for name in sorted(counts)]


def first_of(findings: list[Finding]) -> str:
    """The first findings of each rule, the shortest first, with the history that shows them."""
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule].append(finding)
    shown: list[str] = []
    for rule, found in by_rule.items():
        shown += map(str, sorted(found, key=lambda each: len(each.lines))[:MOST_FINDINGS])
        if len(found) > MOST_FINDINGS:
            shown.append(f"{rule}: {len(found) - MOST_FINDINGS} more")
    return "\n\n".join(shown)
