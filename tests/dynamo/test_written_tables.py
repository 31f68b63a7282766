"""The suite knows which tables it must empty before the next test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.factories import make_user, stored_items
from tests.forked import in_a_child
from tests.written_tables import WrittenTables, recorded

pytestmark = pytest.mark.usefixtures("engine")

TABLES = ["cache", "locks", "users"]


@pytest.fixture
def written() -> Iterator[WrittenTables]:
    with recorded() as written:
        assert written.among(TABLES) == TABLES
        yield written


def test_a_table_counts_as_written_once_after_a_write_and_never_after_a_read(
    written: WrittenTables,
) -> None:
    make_user()
    assert written.among(TABLES) == ["users"]

    assert stored_items() != {}
    assert written.among(TABLES) == []


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_all_tables_count_as_written_while_another_process_runs_and_once_afterwards(
    written: WrittenTables,
) -> None:
    process = subprocess.Popen(["sleep", "600"])
    assert written.among(TABLES) == TABLES
    assert written.among(TABLES) == TABLES

    process.kill()
    process.wait()
    assert written.among(TABLES) == TABLES
    assert written.among(TABLES) == []

    in_a_child(lambda: None)
    assert written.among(TABLES) == TABLES
