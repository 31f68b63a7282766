"""Writers, and the engine itself, are killed with SIGKILL at any moment; nothing is torn."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from accounts.models import User
from accounts.services import account_key
from dynamo import tables
from tests import engines, workers
from tests.factories import assert_guards_match_users, stored_items
from tests.faults.proxy import through
from tests.waiting import wait_until

ROUNDS = 20 if os.environ.get("STRESS") == "full" else 2
WRITERS = 4
LONGEST_LIFE_SECONDS = 1.5


@pytest.fixture
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[engines.Durable]:
    """An engine with a file, empty, which this process and those that it starts talk to."""
    if request.config.getoption("--engine") != "dynoxide":
        pytest.skip("needs an engine that keeps its data when it is killed")
    engine = engines.Durable(tmp_path)
    try:
        with through(engine.url):
            for table in tables.all_tables():
                if table.name == User.table():
                    tables.create(table)
            yield engine
    finally:
        engine.kill()


def live_and_die(durable: engines.Durable, folder: Path, *, engine_too: bool) -> None:
    """Let writers work, and kill each at a moment of its own; halfway perhaps the engine too."""
    with workers.started("write", folder, count=WRITERS) as writers:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        # A machine that stands still must not let them die before they did anything.
        wait_until(lambda: has_enough(log_of(folder)))
        moments = sorted(random.uniform(0, LONGEST_LIFE_SECONDS) for _ in writers)
        began = time.monotonic()
        for place, (writer, moment) in enumerate(zip(writers, moments, strict=True)):
            time.sleep(max(0, began + moment - time.monotonic()))
            if engine_too and place == WRITERS // 2:
                durable.restart()
            workers.end(writer)
        assert [writer.returncode for writer in writers] == [-signal.SIGKILL] * WRITERS


def has_enough(log: list[dict[str, Any]]) -> bool:
    """Whether all may have worked, and some account is nobody else's."""
    return len(log) > WRITERS and any(line["do"] == "keep" for line in log)


def log_of(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for file in folder.glob("*.log") for line in file.read_text().splitlines()
    ]


def assert_all_is_well() -> None:
    assert_guards_match_users()
    call_command("checkguards", "--json")  # a CommandError where it finds anything


@pytest.mark.stress
def test_guards_match_users_whoever_is_killed_and_each_request_makes_one_account(
    durable: engines.Durable, tmp_path: Path
) -> None:
    for number in range(ROUNDS):
        live_and_die(durable, tmp_path, engine_too=bool(number % 2))

        assert_all_is_well()

    with workers.started("finish", tmp_path, count=WRITERS) as writers:
        assert [writer.wait(120) for writer in writers] == [0] * WRITERS
    assert_all_is_well()
    log = log_of(tmp_path)
    assert len(log) > WRITERS
    # Who nobody else touched is there once, as whom it was told; killed and asked again or not.
    kept = {line["request_id"]: line for line in log if line["do"] == "keep"}
    assert kept
    users = [User.from_raw_data(item) for pk, item in stored_items().items() if "#" not in pk]
    names = Counter(user.username for user in users if user.username.startswith("keep-"))
    assert names == {line["name"]: 1 for line in kept.values()}
    assert all(line["outcome"] == account_key(request_id) for request_id, line in kept.items())
