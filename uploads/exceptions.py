"""Errors of uploads.

UploadError
├── BadDestination         the text does not name a bucket and a prefix
├── BadKey                 an object cannot have this key
├── Unreadable             a file cannot be read
├── FileChanged            a file changed while it was read
├── Conflict               another object has the key; it is left alone
├── ClaimLost              another process has taken over the row
├── Interrupted            the run was told to stop; the next run continues the upload
└── StorageFailed          S3 refused, or did not answer
    ├── BucketMissing      the bucket does not exist
    ├── ObjectExists       If-None-Match: an object has the key (412)
    ├── StorageBusy        another request for the key was in progress (409); try again
    ├── PartChanged        a stored part is not the one that was sent
    └── UploadGone         the multipart upload was completed or aborted
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dynamo.terminal import printable


class UploadError(Exception):
    pass


@dataclass(eq=False)
class BadDestination(UploadError):
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{printable(self.text)} is not an s3://BUCKET/PREFIX URL: {self.reason}."


@dataclass(eq=False)
class BadKey(UploadError):
    key: str
    reason: str

    def __str__(self) -> str:
        return f"Not a valid S3 key: {self.reason}."


@dataclass(eq=False)
class Unreadable(UploadError):
    path: str
    reason: str

    def __str__(self) -> str:
        return f"The file cannot be read: {self.reason}."


@dataclass(eq=False)
class FileChanged(UploadError):
    path: str

    def __str__(self) -> str:
        return "The file changed while it was read."


@dataclass(eq=False)
class Conflict(UploadError):
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}."


@dataclass(eq=False)
class ClaimLost(UploadError):
    url: str

    def __str__(self) -> str:
        return f"Another process has taken over {printable(self.url)}."


class Interrupted(UploadError):
    def __str__(self) -> str:
        return "The upload was interrupted."


@dataclass(eq=False)
class StorageFailed(UploadError):
    """`code` is S3's error code, or the name of botocore's exception.

    `retries` is how often botocore repeated the request: an earlier attempt may have succeeded.
    """

    operation: str
    code: str
    message: str
    retries: int = field(default=0, kw_only=True)

    def __str__(self) -> str:
        return f"S3 {self.operation} failed: {self.code}: {self.message}".rstrip(". ") + "."


class BucketMissing(StorageFailed):
    pass


class ObjectExists(StorageFailed):
    pass


class StorageBusy(StorageFailed):
    pass


class PartChanged(StorageFailed):
    pass


class UploadGone(StorageFailed):
    pass
