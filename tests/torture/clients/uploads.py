"""Folders of files to upload, and clients that upload them, several of them the same one."""

import random
import threading
from pathlib import Path

from tests.torture.clients.client import Client
from tests.torture.history import Journal
from tests.uploads.samples import content
from uploads.contents import MIB
from uploads.run import upload_files
from uploads.sources import Destination, Source
from web.s3 import BucketMissing

BUCKET = "torture"
PREFIX = "in"
LEASE_SECONDS = 3.0
#: Clients upload one of so many newest folders. There is a new one every few seconds.
RECENT = 3
EVERY_SECONDS = 10.0
FILES = 10
#: One of so many folders has a file that is uploaded in parts.
LARGE_EVERY = 8


def make_folder(root: Path, chance: random.Random) -> None:
    """Make the next folder; it appears with all its files at once."""
    number = len(list(root.glob("batch-*")))
    hidden = root / f".batch-{number:04}"
    hidden.mkdir()
    for each in range(FILES):
        size = chance.choice([0, 1, chance.randrange(50_000)])
        (hidden / f"{each}.log").write_bytes(content(size, (number, each, chance.random())))
    if number % LARGE_EVERY == LARGE_EVERY - 1:
        (hidden / "large.log").write_bytes(content(9 * MIB + chance.randrange(MIB), number))
    hidden.rename(root / f"batch-{number:04}")


def sources(root: Path, folders: str = "batch-*") -> list[Source]:
    """The files of the folders, whose keys are PREFIX and their paths below `root`."""
    return [
        Source(str(path), f"{PREFIX}/{path.relative_to(root)}", path.stat().st_size)
        for path in sorted(root.glob(f"{folders}/*"))
    ]


class UploadClient(Client):
    def step(self) -> None:
        """Upload one of the newest folders; `stop` ends that between two files."""
        root = self.plan.folder / "uploads"
        if folders := sorted(each.name for each in root.glob("batch-*"))[-RECENT:]:
            upload(self.journal, root, self.chance.choice(folders), self.stop)


def upload(journal: Journal, root: Path, folders: str, stop: threading.Event | None = None) -> None:
    """Upload the folders of `root` that `folders` matches."""
    outcomes: dict[str, str] = {}
    with journal.call("upload", refusals=(BucketMissing,), folders=folders) as call:
        upload_files(
            sources(root, folders),
            Destination(BUCKET, PREFIX),
            workers=2,
            lease_seconds=LEASE_SECONDS,
            on_result=lambda result: outcomes.update({result.key: result.outcome}),
            stop=stop,
        )
        call.ok(files=outcomes)
