"""The suite's own knowledge of what it must empty between tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.factories import make_user, stored_items
from tests.written_tables import WrittenTables, noted

pytestmark = pytest.mark.usefixtures("engine")

TABLES = ["cache", "locks", "users"]


@pytest.fixture
def written() -> Iterator[WrittenTables]:
    with noted() as written:
        # Who knows what was there before.
        assert written.among(TABLES) == TABLES
        yield written


def test_a_table_that_was_written_to_is_touched_once(written: WrittenTables) -> None:
    make_user()

    assert written.among(TABLES) == ["users"]
    assert written.among(TABLES) == []


def test_a_table_that_was_only_read_is_not_touched(written: WrittenTables) -> None:
    assert stored_items() == {}

    assert written.among(TABLES) == []


def test_all_are_touched_while_another_process_lives_and_once_after(written: WrittenTables) -> None:
    process = subprocess.Popen(["sleep", "600"])
    assert written.among(TABLES) == TABLES
    assert written.among(TABLES) == TABLES

    process.kill()
    process.wait()

    assert written.among(TABLES) == TABLES
    assert written.among(TABLES) == []


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_all_are_touched_by_a_fork(written: WrittenTables) -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)

    assert written.among(TABLES) == TABLES
