"""Rows that released versions stored: unfinished uploads are completed, others skipped."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run
from tests.stored.releases import Stored, each_release, load
from tests.uploads.s3_proxy import S3Proxy
from tests.uploads.samples import Storage, all_rows, content, put_in_parts, remove_locks
from uploads.contents import MIB, PART_BYTES

pytestmark = each_release

#: The files that the release uploaded, and those at which it was killed or stopped.
SMALL = content(1000)
LARGE = content(2 * PART_BYTES + 1000)
DONE = {"small.txt": SMALL, "large.bin": LARGE}
BEGUN = {"dead.txt": SMALL, "half.bin": LARGE, "free.bin": content(PART_BYTES + MIB)}


@pytest.fixture
def stored(engine: str, release: Path, s3: Any) -> Stored:
    """The rows, the locks of their processes, and the objects of the rows that are done."""
    stored = load(release)
    bucket = stored.about["bucket"]
    with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
        s3.create_bucket(Bucket=bucket)
    for name in BEGUN:
        s3.delete_object(Bucket=bucket, Key=f"in/{name}")
    s3.put_object(Bucket=bucket, Key="in/small.txt", Body=SMALL, ChecksumAlgorithm="SHA256")
    parts = [LARGE[at : at + PART_BYTES] for at in range(0, len(LARGE), PART_BYTES)]
    put_in_parts(s3, bucket, "in/large.bin", parts, ChecksumAlgorithm="SHA256")
    return stored


def test_done_files_are_skipped_and_unfinished_ones_completed(
    stored: Stored, s3: Any, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    bucket = stored.about["bucket"]
    storage = Storage(bucket, s3, s3_proxy, tmp_path)
    files = [storage.file(name, data) for name, data in (DONE | BEGUN).items()]

    uploaded = storage.upload(*files)

    outcomes = {result.name: result.outcome for result in uploaded.results}
    assert {Path(name).name: outcome for name, outcome in outcomes.items()} == {
        **dict.fromkeys(DONE, "skipped"),
        **dict.fromkeys(BEGUN, "uploaded"),
    }
    remove_locks()
    storage.assert_stored(files)
    assert run("checkuploads", f"s3://{bucket}/in")[2] == 0


def test_done_rows_are_sound_and_unfinished_ones_can_be_forgotten(stored: Stored) -> None:
    where = f"s3://{stored.about['bucket']}/in"
    out, _err, code = run("checkuploads", where, "--json")
    found = json.loads(out)
    assert (found.pop("unfinished"), code) == (sorted(f"in/{name}" for name in BEGUN), 1)
    assert found == {"rows": 5, "objects": 2, "missing": [], "foreign": [], "different": []}

    run("checkuploads", where, "--forget-unfinished")

    assert {row["key"] for row in all_rows()} == {f"{where}/{name}" for name in DONE}
    assert run("checkuploads", where)[2] == 0
