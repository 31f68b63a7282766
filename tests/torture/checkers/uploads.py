"""Checks what uploads reported, what S3 stored at any time, and what is stored in the end.

once      S3 has stored an object under each key at most once.
whole     each file is stored in the end, with the bytes that are on disk.
promised  a file that was reported as uploaded or skipped is stored in the end.
clean     no upload reports a conflict.
"""

from collections.abc import Mapping, Sequence

from tests.torture.findings import Finding, of_calls
from tests.torture.history import Call

#: The SHA-256 of each object, in hex.
Digests = Mapping[str, str]


def check(
    calls: Sequence[Call], *, files: Digests, objects: Digests, times_stored: Mapping[str, int]
) -> list[Finding]:
    """Find broken rules; `files` are those on disk, `objects` those in S3 in the end, by key."""
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
