"""A process that uploads a folder, for crashes and storms.

    python -m tests.uploads.worker FOLDER BUCKET LEASE_SECONDS WORKERS

It prints one line for each file, its outcome and its name, and the reason where there is one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django
from django.conf import settings


def main(folder: str, bucket: str, lease_seconds: str, workers: str) -> None:
    """Upload what is in the folder."""
    django.setup()
    from tests.uploads.samples import in_folder
    from uploads import others
    from uploads.destination import Destination
    from uploads.running import Result, upload_files

    others.POLL_SECONDS = 0.1

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


def start(
    folder: Path, bucket: str, *, lease_seconds: float = 1, workers: int = 1
) -> subprocess.Popen[str]:
    """Start such a process on the engines that this one talks to."""
    arguments = [str(folder), bucket, str(lease_seconds), str(workers)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.uploads.worker", *arguments],
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def started(
    folder: Path, bucket: str, *, lease_seconds: float = 1, workers: int = 1
) -> Iterator[subprocess.Popen[str]]:
    """Such a process, ended with the block."""
    worker = start(folder, bucket, lease_seconds=lease_seconds, workers=workers)
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()
        if worker.stdout is not None:
            worker.stdout.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
