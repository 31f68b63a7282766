"""What a bucket holds below a prefix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from uploads import s3
from uploads.destination import Destination


@dataclass(frozen=True)
class Listed:
    """An object as a listing shows it."""

    key: str
    size: int
    etag: str


def pages(destination: Destination, *, page_limit: int = 1000) -> Iterator[list[Listed]]:
    """Every object below the prefix, page by page; never more than one page is in memory.

    A prefix is whole parts of a path: below `logs` is `logs/a`, but not `logs2/a`. Costs 1 request
    per 1,000 objects.

    Raises:
        BucketMissing, StorageFailed: see `uploads.s3`.
    """
    request: dict[str, Any] = {
        "Bucket": destination.bucket,
        "Prefix": below(destination),
        "MaxKeys": page_limit,
    }
    while True:
        # boto3 asks for the keys URL-encoded, as XML has no sign for some of theirs, and decodes.
        answer = s3.call("ListObjectsV2", **request)
        yield [
            Listed(found["Key"], found["Size"], found["ETag"].strip('"'))
            for found in answer.get("Contents", [])
        ]
        if not answer.get("IsTruncated"):
            return
        request["ContinuationToken"] = answer["NextContinuationToken"]


def look_into(destination: Destination) -> None:
    """Return where the bucket is there and answers us. Costs 1 request.

    Raises:
        BucketMissing, StorageFailed: see `uploads.s3`.
    """
    # HeadBucket would have no message where it is refused.
    s3.call("ListObjectsV2", Bucket=destination.bucket, Prefix=below(destination), MaxKeys=1)


def below(destination: Destination) -> str:
    """What all keys below the prefix begin with."""
    return f"{destination.prefix}/" if destination.prefix else ""
