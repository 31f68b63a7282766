"""A process that uploads a folder with one worker, for tests of crashes.

    python -m tests.uploads.worker FOLDER BUCKET LEASE_SECONDS

It prints one line for each file, its outcome and its name, and the reason where there is one.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django

from tests import programs
from tests.forked import Forked


def main(folder: str, bucket: str, lease_seconds: str) -> None:
    """Upload what is in the folder."""
    django.setup()
    from tests.uploads.samples import PART_BYTES, in_folder
    from uploads import claims, contents
    from uploads.run import upload_files
    from uploads.sources import Destination
    from uploads.transfer import Result

    claims.POLL_SECONDS = 0.1
    contents.PART_BYTES = PART_BYTES

    def say(result: Result) -> None:
        sys.stdout.write(f"{result.outcome} {Path(result.name).name} {result.reason}\n")
        sys.stdout.flush()

    upload_files(
        in_folder(Path(folder)),
        Destination(bucket, "in"),
        workers=1,
        lease_seconds=float(lease_seconds),
        on_result=say,
    )


@contextmanager
def started(folder: Path, bucket: str, *, lease_seconds: float) -> Iterator[Forked]:
    """Such a process on the engines of this one, killed at the end of the block."""
    arguments = folder, bucket, lease_seconds
    with programs.start("tests.uploads.worker", *arguments, stderr=False) as worker:
        try:
            yield worker
        finally:
            worker.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
