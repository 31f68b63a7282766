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

from dynamo.terminal import printable


class UploadError(Exception):
    pass


class BadDestination(UploadError):
    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, reason)
        self.text = text
        self.reason = reason

    def __str__(self) -> str:
        return f"{printable(self.text)} is not an s3://BUCKET/PREFIX URL: {self.reason}."


class BadKey(UploadError):
    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"Not a valid S3 key: {self.reason}."


class Unreadable(UploadError):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"The file cannot be read: {self.reason}."


class FileChanged(UploadError):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return "The file changed while it was read."


class Conflict(UploadError):
    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason}."


class ClaimLost(UploadError):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url

    def __str__(self) -> str:
        return f"Another process has taken over {printable(self.url)}."


class Interrupted(UploadError):
    def __str__(self) -> str:
        return "The upload was interrupted."


class StorageFailed(UploadError):
    """`code` is S3's error code, or the name of botocore's exception.

    `retries` is how often botocore repeated the request: an earlier attempt may have succeeded.
    """

    def __init__(self, operation: str, code: str, message: str, *, retries: int = 0) -> None:
        super().__init__(operation, code, message)
        self.operation = operation
        self.code = code
        self.message = message
        self.retries = retries

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
