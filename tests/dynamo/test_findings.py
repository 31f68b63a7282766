"""The findings of a check, and the spool that sorts more entries than memory holds."""

import random
import sqlite3

import pytest

from dynamo._internal.checking import findings
from dynamo._internal.checking.findings import Findings, Spool


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
    guards, users = back[::2], back[1::2]
    assert sorted(text for text, _kind in guards) == sorted(awkward)
    assert [text for text, _kind in guards if text in {"a", "b", "c"}] == ["a", "b", "c"]
    assert [[text, "user"] for text, _guard in guards] == users
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        list(kept)
