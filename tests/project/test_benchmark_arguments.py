"""The numbers of a benchmark's command line."""

from __future__ import annotations

import pytest

from benchmarks.arguments import asked


@pytest.mark.parametrize(
    ("given", "numbers"), [([], [3, 5_000]), (["1"], [1, 5_000]), (["2", "30"], [2, 30])]
)
def test_what_is_not_given_has_its_default(
    given: list[str], numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmark", *given])

    assert asked("How fast?", rounds=3, files=5_000) == numbers


@pytest.mark.parametrize("given", [["x"], ["0"], ["-1"], ["1.5"], ["1", "2", "3"]])
def test_what_is_no_count_ends_with_the_usage_and_exit_2(
    given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmark", *given])

    with pytest.raises(SystemExit) as ended:
        asked("How fast?", rounds=3, files=5_000)

    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: ")
