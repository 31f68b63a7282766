"""What can go wrong with uploads.

UploadError
├── BadDestination         the text names no bucket and prefix
├── BadKey                 no object can have this key
├── Unreadable             a file cannot be read
├── FileChanged            a file was written to while we read it
├── Conflict               another object has the key; it is left alone
├── ClaimLost              another process has taken the row over
├── Interrupted            we were told to stop
└── StorageFailed          S3 refused, or gave no answer
    ├── BucketMissing      there is no such bucket
    ├── ObjectExists       If-None-Match: an object has the key (412)
    ├── StorageBusy        another request for the key was under way (409)
    ├── PartChanged        a part is not the one that we mean to put together
    └── UploadGone         the multipart upload is completed or aborted
"""

from __future__ import annotations

from dynamo.terminal import printable


class UploadError(Exception):
    """Base of every error of uploads."""


class BadDestination(UploadError):
    """The text names no bucket and prefix."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, reason)
        self.text = text
        self.reason = reason

    def __str__(self) -> str:
        return f"{printable(self.text)} is no s3://BUCKET/PREFIX: {self.reason}."


class BadKey(UploadError):
    """No object can have this key."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"S3 has no key like this one: {self.reason}."


class Unreadable(UploadError):
    """A file cannot be read, or is none."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"The file cannot be read: {self.reason}."


class FileChanged(UploadError):
    """A file was written to while we read it, so what we read may be neither old nor new."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return "The file changed while it was read."


class Conflict(UploadError):
    """Another object has the key, in the bucket or in the table; it is left alone."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason}."


class ClaimLost(UploadError):
    """Another process has taken the row over, as we seemed to be gone."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url

    def __str__(self) -> str:
        return f"Another process has taken over {printable(self.url)}."


class Interrupted(UploadError):
    """We were told to stop; the next run goes on from here."""

    def __str__(self) -> str:
        return "The upload was interrupted."


class StorageFailed(UploadError):
    """S3 refused, or gave no answer; `code` is S3's, or the name of botocore's error.

    `retries` is how often botocore had repeated the request: it may have been carried out before.
    """

    def __init__(self, operation: str, code: str, message: str, *, retries: int = 0) -> None:
        super().__init__(operation, code, message)
        self.operation = operation
        self.code = code
        self.message = message
        self.retries = retries

    def __str__(self) -> str:
        return f"S3 did not do {self.operation}: {self.code}: {self.message}".rstrip(". ") + "."


class BucketMissing(StorageFailed):
    """There is no such bucket; no file of the run can be stored."""


class ObjectExists(StorageFailed):
    """An object has the key already (412 on If-None-Match)."""


class StorageBusy(StorageFailed):
    """Another request for the key was under way (409): the same may succeed now."""


class PartChanged(StorageFailed):
    """A part that S3 has is not the one that we mean to put together."""


class UploadGone(StorageFailed):
    """There is no such multipart upload (any more): it was completed or aborted."""
