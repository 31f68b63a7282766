"""The suite's own knowledge of what it must empty between tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.factories import make_user, stored_items
from tests.touched import Touched, noted

pytestmark = pytest.mark.usefixtures("engine")

TABLES = ["cache", "locks", "users"]


@pytest.fixture
def touched() -> Iterator[Touched]:
    with noted() as touched:
        # Who knows what was there before.
        assert touched.among(TABLES) == TABLES
        yield touched


def test_a_table_that_was_written_to_is_touched_once(touched: Touched) -> None:
    make_user()

    assert touched.among(TABLES) == ["users"]
    assert touched.among(TABLES) == []


def test_a_table_that_was_only_read_is_not_touched(touched: Touched) -> None:
    assert stored_items() == {}

    assert touched.among(TABLES) == []


def test_all_are_touched_while_another_process_lives_and_once_after(touched: Touched) -> None:
    process = subprocess.Popen(["sleep", "600"])
    assert touched.among(TABLES) == TABLES
    assert touched.among(TABLES) == TABLES

    process.kill()
    process.wait()

    assert touched.among(TABLES) == TABLES
    assert touched.among(TABLES) == []


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_all_are_touched_by_a_fork(touched: Touched) -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)

    assert touched.among(TABLES) == TABLES
