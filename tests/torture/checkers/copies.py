"""Checks what clients did from copies that may have been outdated.

gone    seats that were opened are stored until the end.
seats   as many are sold as sales succeeded; those without an answer may have succeeded.
jobs    at most one of several threads claims a job, or takes it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.torture.findings import Finding, of_calls
from tests.torture.history import Call


def check(calls: Sequence[Call], sold: Mapping[str, int]) -> list[Finding]:
    """Find broken rules; `sold` are the sold seats as they are stored, by key."""
    findings = []
    sales: dict[str, Counter[str]] = {}
    for call in calls:
        if call.do == "sell":
            sales.setdefault(call.asked["seats"], Counter())[call.outcome] += call.asked["sold"]
    for key, done in sales.items():
        if key not in sold:
            findings.append(Finding("gone", f"{key} was deleted"))
            continue
        least = done["ok"]
        most = done["ok"] + done["unknown"]
        if not least <= sold[key] <= most:
            about = f"{sold[key]} of {key} are sold, not {least} to {most}"
            findings.append(Finding("seats", about))
    wanted: dict[str, list[Call]] = {}
    for call in calls:
        if call.do in {"claim", "take"} and call.outcome == "ok":
            wanted.setdefault(call.asked["job"], []).append(call)
    findings += [
        of_calls("jobs", f"{job} went to several", value)
        for job, value in wanted.items()
        if len(value) > 1
    ]
    return findings
