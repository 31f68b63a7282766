"""Processes on one folder are killed at random and started again: each file is stored once."""

from __future__ import annotations

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.uploads import worker
from tests.uploads.s3_proxy import S3Proxy
from tests.uploads.samples import assert_stored, content, file_of, in_folder
from uploads.contents import MIB
from uploads.sources import Destination

FULL = os.environ.get("STRESS") == "full"
FILES = 1000 if FULL else 30
LARGE_EVERY = 100 if FULL else 15
PROCESSES = 3
KILLS = 12 if FULL else 2

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.stress]


def _size(number: int, chance: random.Random) -> int:
    if number % LARGE_EVERY == 7:
        return 8 * MIB + chance.randrange(1, 10 * MIB)
    return chance.choice([0, 1, chance.randrange(100_000)])


def test_killed_processes_store_every_file_exactly_once(
    bucket: str, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    chance = random.Random()
    for number in range(FILES):
        file_of(tmp_path, f"{number % 7}/{number}", content(_size(number, chance), number))
    outputs: list[str] = []

    def live(process_number: int) -> None:
        for _life in range(KILLS):
            with worker.started(tmp_path, bucket, lease_seconds=2, workers=4) as process:
                assert process.stdout is not None
                # Once it works, at any moment.
                process.stdout.readline()
                threading.Event().wait(random.uniform(0, 1.5 if FULL else 0.4))
        with worker.started(tmp_path, bucket, lease_seconds=2, workers=4) as process:
            said, _err = process.communicate(timeout=500)
            assert process.returncode == 0
            outputs.append(said)

    with ThreadPoolExecutor(PROCESSES) as pool:
        list(pool.map(live, range(PROCESSES)))

    for said in outputs:
        outcomes = [line.split()[0] for line in said.splitlines()]
        assert len(outcomes) == FILES
        assert set(outcomes) <= {"uploaded", "skipped"}
    files = list(in_folder(tmp_path))
    assert s3_proxy.stored == {file.key: 1 for file in files}
    assert_stored(s3, bucket, files, dead_locks=True)
    _assert_check_is_sound(bucket)


def _assert_check_is_sound(bucket: str) -> None:
    from uploads.check import check_uploads

    assert check_uploads(Destination(bucket, "in")).is_sound
