"""Clients that upload folders, several of them the same one."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

from dynamo.exceptions import DynamoError
from tests.torture.history import Journal
from uploads.run import upload_files
from uploads.sources import Destination, Source
from web.s3 import BucketMissing

BUCKET = "torture"
PREFIX = "in"
LEASE_SECONDS = 3.0
RECENT = 3


class UploadClient:
    """A client; `stop` ends an upload between two files."""

    def __init__(
        self, journal: Journal, chance: random.Random, folders: Path, stop: threading.Event
    ) -> None:
        self._journal = journal
        self._chance = chance
        self._folders = folders
        self._stop = stop

    def step(self) -> None:
        """Upload one of the newest folders."""
        folders = sorted(self._folders.glob("batch-*"))[-RECENT:]
        if folders:
            folder = self._chance.choice(folders)
            upload(self._journal, self._folders, [folder], self._stop)


def upload(
    journal: Journal, root: Path, folders: list[Path], stop: threading.Event | None = None
) -> None:
    """Upload `folders`, each below `root`."""
    outcomes: dict[str, str] = {}
    with journal.call("upload", folders=[folder.name for folder in folders]) as call:
        try:
            upload_files(
                sources(root, folders),
                Destination(BUCKET, PREFIX),
                workers=2,
                lease_seconds=LEASE_SECONDS,
                on_result=lambda result: outcomes.update({result.key: result.outcome}),
                stop=stop,
            )
        except (DynamoError, BucketMissing) as error:
            call.unanswered(error)
        else:
            call.ok(files=outcomes)


def sources(root: Path, folders: list[Path]) -> Iterator[Source]:
    """The files of the folders, whose keys are PREFIX and their paths below `root`."""
    for folder in folders:
        for path in sorted(folder.iterdir()):
            yield Source(str(path), f"{PREFIX}/{path.relative_to(root)}", path.stat().st_size)
