"""Errors of uploads.

UploadError
├── BadDestination         the text does not name a bucket and a prefix
├── BadKey                 an object cannot have this key
├── Unreadable             a file cannot be read
├── FileChanged            a file changed while it was read
├── Conflict               the key belongs to another object, which is left unchanged
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

from dynamo.extending import ErrorWithValues, printable


class UploadError(ErrorWithValues):
    """`subject` is the text, path, key or URL that the error is about."""

    subject: str = ""
    reason: str = ""

    text = "{reason}."

    def __str__(self) -> str:
        return self.text.format(subject=printable(self.subject), reason=self.reason)


class BadDestination(UploadError):
    text = "{subject} is not an s3://BUCKET/PREFIX URL: {reason}."


class BadKey(UploadError):
    text = "Not a valid S3 key: {reason}."


class Unreadable(UploadError):
    text = "The file cannot be read: {reason}."


class FileChanged(UploadError):
    text = "The file changed while it was read."


class Conflict(UploadError):
    pass


class ClaimLost(UploadError):
    text = "Another process has taken over {subject}."


class Interrupted(UploadError):
    text = "The upload was interrupted."


class StorageFailed(UploadError):
    """`code` is S3's error code, or the name of botocore's exception.

    `retries` is how often botocore repeated the request: an earlier attempt may have succeeded.
    """

    def __init__(self, operation: str, code: str, message: str, *, retries: int = 0) -> None:
        super().__init__(operation, f"S3 {operation} failed: {code}: {message}".rstrip(". "))
        self.code = code
        self.retries = retries


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
