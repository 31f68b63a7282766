"""The suite knows which tables it must empty before the next test."""

import subprocess

import pytest

from tests.factories import make_user, stored_items
from tests.forked import in_a_child
from tests.written_tables import recorded

TABLES = ["cache", "locks", "users"]


@pytest.mark.usefixtures("engine")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_table_counts_as_written_once_after_a_write_and_all_while_another_process_runs() -> None:
    with recorded() as written:
        assert written.among(TABLES) == TABLES
        make_user()
        assert written.among(TABLES) == ["users"]
        assert stored_items() != {}
        assert written.among(TABLES) == []

        process = subprocess.Popen(["sleep", "600"])
        assert written.among(TABLES) == written.among(TABLES) == TABLES
        process.kill()
        process.wait()
        assert written.among(TABLES) == TABLES
        assert written.among(TABLES) == []

        in_a_child(lambda: None)
        assert written.among(TABLES) == TABLES
