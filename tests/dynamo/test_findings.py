"""The findings of a check, and the spool that sorts more entries than memory holds."""

from __future__ import annotations

import random

import pytest

from dynamo._internal import findings
from dynamo._internal.findings import Findings, Spool


def found(*each: int) -> Findings[int]:
    kind: Findings[int] = Findings()
    for finding in each:
        kind.add(finding)
    return kind


def test_findings_beyond_the_limit_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "LISTED", 2)

    kind = found(3, 1, 2, 4)

    assert (kind.listed, kind.more, kind.count) == ([3, 1], 2, 4)
    assert [found(*range(number)).is_full for number in range(4)] == [False, False, True, True]


def test_findings_are_false_only_if_there_are_none() -> None:
    assert not found()
    assert found(0)
    assert Findings([], more=10**38)
    assert Findings([1], more=10**38).count == 10**38 + 1


@pytest.mark.parametrize("run_length", [1, 7, 100, 20_000, 50_000])
def test_a_spool_returns_its_entries_sorted_for_any_length_of_a_run(run_length: int) -> None:
    entries = [[f"email#{number:05}@example.com", f"owner {number % 7}"] for number in range(2_000)]
    shuffled = random.sample(entries, len(entries))
    with Spool(run_length) as kept:
        for entry in shuffled:
            kept.add(*entry)

        assert list(kept) == entries
        assert len(kept) == 2_000


def test_a_spool_keeps_few_entries_in_memory_and_few_files_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = {"in memory": 0, "open": 0}
    write_out = Spool._write_out

    def watched(self: Spool) -> None:
        most["in memory"] = max(most["in memory"], len(self._waiting))
        write_out(self)
        most["open"] = max(most["open"], len(self._runs))

    monkeypatch.setattr(Spool, "_write_out", watched)
    with Spool(run_length=100) as kept:
        for number in random.sample(range(20_000), 20_000):
            kept.add(f"{number:05}")

        assert [int(entry[0]) for entry in kept] == list(range(20_000))
    assert most == {"in memory": 100, "open": findings.OPEN_RUNS}


def test_a_spool_can_be_read_again() -> None:
    with Spool(run_length=3) as kept:
        for number in range(10):
            kept.add(str(number))
        reading = iter(kept)
        assert next(reading) == ["0"]
        del reading

        assert [entry for [entry] in kept] == list("0123456789")
        assert [entry for [entry] in kept] == list("0123456789")


def test_a_spool_returns_any_text_and_keeps_equal_first_texts_together() -> None:
    awkward = ["", "\n", '"', "a", 'a"', 'a", "', "a\n", "a b", "ä", "\u2028", "🙂", "\x00", "\\"]
    with Spool(run_length=4) as kept:
        for text in random.sample(awkward, len(awkward)):
            kept.add(text, "guard")
        for text in random.sample(awkward, len(awkward)):
            kept.add(text, "user")

        back = list(kept)
    assert sorted(text for text, _kind in back[::2]) == sorted(awkward)
    assert all(
        (one[0], one[1], other[1]) == (other[0], "guard", "user")
        for one, other in zip(back[::2], back[1::2], strict=True)
    )


def test_a_closed_spool_is_empty_and_has_closed_its_files() -> None:
    kept = Spool(run_length=1)
    kept.add("a")
    [run] = kept._runs

    kept.close()

    assert run.closed
    assert (len(kept), list(kept)) == (0, [])
