"""Programs that the suite forks: they are talked to, and end, as those that a shell starts."""

from __future__ import annotations

import pytest

from tests.programs import start

#: It reads until its input ends.
PROGRAM = "json.tool"


def test_it_reads_and_prints_and_ends() -> None:
    with start(PROGRAM, "--compact", stdin=True) as process:
        assert process.communicate('{"a": 1}') == ('{"a":1}\n', "")

    assert process.returncode == 0


def test_its_errors_come_apart_with_its_exit_code() -> None:
    with start(PROGRAM, stdin=True) as process:
        out, err = process.communicate("{")

    assert (out, process.returncode) == ("", 1)
    assert err.startswith("Expecting property name")


def test_one_that_is_killed_says_by_which_signal() -> None:
    with start(PROGRAM, stdin=True) as process:
        assert process.poll() is None
        process.kill()

        assert process.wait() == -9

    assert process.poll() == -9
    process.kill()  # which reaches nobody else


def test_who_waits_in_vain_leaves_it_running() -> None:
    with start(PROGRAM, stdin=True) as process:
        with pytest.raises(TimeoutError):
            process.wait(timeout=0.01)

        assert process.communicate("[]") == ("[]\n", "")


def test_many_run_beside_each_other() -> None:
    with start(PROGRAM, stdin=True) as one, start(PROGRAM, stdin=True) as other:
        assert other.communicate("2") == ("2\n", "")
        assert one.poll() is None
        assert one.communicate("1") == ("1\n", "")
