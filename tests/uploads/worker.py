"""A process that uploads a folder, for crashes and stress tests.

    python -m tests.uploads.worker FOLDER BUCKET LEASE_SECONDS WORKERS

It prints one line for each file, its outcome and its name, and the reason where there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django

from tests import programs
from tests.forked import Forked


def main(folder: str, bucket: str, lease_seconds: str, workers: str) -> None:
    """Upload what is in the folder."""
    django.setup()
    from tests.uploads.samples import in_folder
    from uploads import claims
    from uploads.run import upload_files
    from uploads.sources import Destination
    from uploads.transfer import Result

    claims.POLL_SECONDS = 0.1

    def say(result: Result) -> None:
        sys.stdout.write(f"{result.outcome} {Path(result.name).name} {result.reason}\n")
        sys.stdout.flush()

    upload_files(
        in_folder(Path(folder)),
        Destination(bucket, "in"),
        workers=int(workers),
        lease_seconds=float(lease_seconds),
        on_result=say,
    )


def start(folder: Path, bucket: str, *, lease_seconds: float = 1, workers: int = 1) -> Forked:
    """Start such a process on the engines of this one."""
    return programs.start(
        "tests.uploads.worker", folder, bucket, lease_seconds, workers, stderr=False
    )


@contextmanager
def started(
    folder: Path, bucket: str, *, lease_seconds: float = 1, workers: int = 1
) -> Iterator[Forked]:
    """Such a process, killed at the end of the block."""
    with start(folder, bucket, lease_seconds=lease_seconds, workers=workers) as worker:
        try:
            yield worker
        finally:
            worker.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
