"""Files to upload, and their results in the table and in the bucket."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locks.models import LockItem
from tests.items import remove_item, scanned
from tests.uploads.s3_proxy import S3Proxy
from uploads.contents import MIB
from uploads.models import DONE, UploadItem
from uploads.run import upload_files
from uploads.sources import Destination, Result, Source
from uploads.transfer import Summary

#: As the fixture `small_parts` cuts files: an eighth of the real size.
PART_BYTES = MIB
SMALL_BYTES = 1000
#: Three parts, the last of them smaller.
LARGE_BYTES = 2 * PART_BYTES + 1000


def content(size: int, seed: object = 0) -> bytes:
    """Different bytes for each seed."""
    # Random bytes take long to make, so one block is repeated.
    block = random.Random(repr(seed)).randbytes(min(size, 4096))
    return (block * (size // 4096 + 1))[:size]


def file_of(folder: Path, name: str, data: bytes) -> Source:
    """A file in `folder`."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return Source(str(path), f"in/{name}", len(data))


class Uploaded:
    """One run: its summary, and the results by the names of the files."""

    def __init__(self, sources: Iterable[Source | Result], bucket: str, **options: Any) -> None:
        self.results: list[Result] = []
        self.bytes = 0
        self.summary: Summary = upload_files(
            sources,
            Destination(bucket, "in"),
            on_result=self.results.append,
            on_bytes=self._count,
            **options,
        )

    def _count(self, size: int) -> None:
        self.bytes += size

    @property
    def outcomes(self) -> list[str]:
        return [result.outcome for result in self.results]

    @property
    def result(self) -> Result:
        (result,) = self.results
        return result


def objects_in(s3: Any, bucket: str) -> dict[str, bytes]:
    """Every object's bytes."""
    found: dict[str, bytes] = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            found[item["Key"]] = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
    return found


def put_in_parts(s3: Any, bucket: str, key: str, parts: list[bytes], **options: Any) -> str:
    """Store an object in these parts, as another client might. Returns its ETag."""
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key=key, **options)["UploadId"]
    named = []
    for number, part in enumerate(parts, 1):
        sent = s3.upload_part(
            Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=part, **options
        )
        told = {name: sent[name] for name in ("ETag", "ChecksumSHA256") if name in sent}
        named.append({"PartNumber": number, **told})
    answer = s3.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": named}
    )
    etag: str = answer["ETag"]
    return etag.strip('"')


def all_rows() -> list[dict[str, Any]]:
    return [
        {name: next(iter(value.values())) for name, value in item.items()}
        for item in scanned(UploadItem.table())
    ]


def locks() -> list[str]:
    """The names of the locks that are there."""
    items = scanned(LockItem.table())
    return [item["key"]["S"] for item in items]


def remove_locks() -> None:
    for name in locks():
        remove_item(LockItem.table(), key=name)


@dataclass(frozen=True)
class Storage:
    """An empty bucket behind a proxy, and a folder for files to upload."""

    bucket: str
    s3: Any
    proxy: S3Proxy
    folder: Path

    def file(self, name: str, data: bytes) -> Source:
        return file_of(self.folder, name, data)

    def upload(self, *sources: Source | Result, **options: Any) -> Uploaded:
        return Uploaded(sources, self.bucket, **options)

    def row(self, source: Source) -> dict[str, Any] | None:
        """The stored row as plain values."""
        url = f"s3://{self.bucket}/{source.key}"
        return next((row for row in all_rows() if row["key"] == url), None)

    def objects(self) -> dict[str, bytes]:
        return objects_in(self.s3, self.bucket)

    def open_uploads(self) -> list[str]:
        """The keys of the multipart uploads that are neither completed nor aborted."""
        uploads = self.s3.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])
        return [upload["Key"] for upload in uploads]

    def assert_untouched(self, source: Source) -> None:
        """Check that there is no object, row, part or lock."""
        assert source.key not in self.objects()
        assert self.row(source) is None
        assert self.open_uploads() == []
        assert locks() == []

    def assert_stored(self, sources: Sequence[Source]) -> None:
        """Check that exactly these files are stored, once and whole, and nothing else is left."""
        wanted = {source.key: Path(source.path).read_bytes() for source in sources}
        found = self.objects()
        assert found.keys() == wanted.keys()
        assert [key for key in wanted if found[key] != wanted[key]] == []
        rows = [row for row in all_rows() if row["key"].startswith(f"s3://{self.bucket}/")]
        assert {row["key"] for row in rows} == {f"s3://{self.bucket}/{key}" for key in wanted}
        assert {row["state"] for row in rows} <= {DONE}
        assert [row for row in rows if row.keys() & {"lease", "fence", "uploadId"}] == []
        assert self.open_uploads() == []
        assert locks() == []
