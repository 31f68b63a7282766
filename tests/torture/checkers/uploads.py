"""Uploads, as the runs say, as S3 logged what it stored, and as it is stored in the end.

once      S3 stored an object under each key at most once, ever.
whole     each file is there in the end, with the bytes that are on disk.
promised  what a run called uploaded or skipped, was there from then on.
clean     no run reports a conflict; a failure is one in passing, and the last run has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.torture.findings import Finding, of_calls
from tests.torture.history import Call

#: Of an object: its SHA-256, in hex.
Digests = Mapping[str, str]


def check(
    calls: Sequence[Call],
    *,
    files: Digests,
    objects: Digests,
    times_stored: Mapping[str, int],
) -> list[Finding]:
    """What is wrong; `files` are those on disk, `objects` those in S3 in the end, by key."""
    runs = [call for call in calls if call.do == "upload"]
    findings = [
        Finding("once", f"{key} was stored {times} times")
        for key, times in sorted(times_stored.items())
        if times != 1
    ]
    findings += [
        Finding("whole", f"{key} is not in S3" if key not in objects else f"{key} differs")
        for key, digest in sorted(files.items())
        if objects.get(key) != digest
    ]
    findings += [Finding("once", f"{key} is no file's") for key in sorted(objects.keys() - files)]
    for run in runs:
        for key, outcome in run.answer.get("files", {}).items():
            if outcome == "conflict":
                findings.append(of_calls("clean", f"{key} is called a conflict", [run]))
            if outcome in {"uploaded", "skipped"} and key not in objects:
                findings.append(of_calls("promised", f"{key} is called {outcome}", [run]))
    return findings
