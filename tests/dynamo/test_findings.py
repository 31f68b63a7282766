"""The findings of a check, and the spool that sorts more entries than memory holds."""

import random
import sqlite3
import subprocess
import sys

import pytest

from dynamo.tables import findings
from dynamo.tables.findings import Findings, Spool


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_findings_beyond_the_limit_are_only_counted(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "LISTED", 2)
    kind: Findings[int] = Findings()
    for finding in range(count):
        kind.add(finding)

    assert (kind.listed, kind.count) == ([*range(min(count, 2))], count)
    assert (kind.is_full, bool(kind)) == (count >= 2, count > 0)
    kind.more += 10**38
    assert (kind.count, bool(kind)) == (count + 10**38, True)


# Peak memory is that of a process, so this runs in a process of its own.
GROWTH = """
from resource import RUSAGE_SELF, getrusage
from dynamo.tables.findings import Spool

with Spool() as kept:
    kept.add("first")
    before = getrusage(RUSAGE_SELF).ru_maxrss
    for number in range(6_000):
        kept.add(f"{number * 7919 % 6_000:02000}")
    assert sum(1 for _entry in kept) == 6_001
    print((getrusage(RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak is Linux's")
def test_a_spool_keeps_few_entries_in_memory() -> None:
    command = [sys.executable, "-c", GROWTH]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    # MB. The entries have 12.
    assert int(ended.stdout) < 6


def test_a_spool_returns_any_text_and_keeps_equal_first_texts_together() -> None:
    awkward = ["", "\n", '"', "a", 'a"', 'a", "', "a\n", "a b", "ä", "\u2028", "🙂", "\x00", "\\"]
    awkward += ["\ud800", "a\udfff", "c", "b"]
    with Spool() as kept:
        for kind in ("guard", "user"):
            for text in random.sample(awkward, len(awkward)):
                kept.add(text, kind)

        assert next(iter(kept)) == ["", "guard"]
        back = list(kept)
        assert list(kept) == back
    guards = back[::2]
    users = back[1::2]
    assert sorted(text for text, _kind in guards) == sorted(awkward)
    assert [text for text, _kind in guards if text in {"a", "b", "c"}] == ["a", "b", "c"]
    assert [[text, "user"] for text, _guard in guards] == users
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        list(kept)
