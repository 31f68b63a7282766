"""Errors of uploads; those of S3 are in `uploads.s3`.

UploadError
├── BadDestination         the text does not name a bucket and a prefix
├── BadKey                 an object cannot have this key
├── Unreadable             a file cannot be read
│   └── FileChanged        it changed meanwhile
├── Conflict               the key belongs to another object, which is left unchanged
├── ClaimLost              another process has taken over the row
└── Interrupted            the run was told to stop; the next run continues the upload
"""

from dynamo.exceptions import ErrorWithValues
from dynamo.runtime.terminal import printable


class UploadError(ErrorWithValues):
    """`subject` is the text, path, key or URL that the error concerns."""

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


class FileChanged(Unreadable):
    text = "The file changed while it was read."


class Conflict(UploadError):
    pass


class ClaimLost(UploadError):
    text = "Another process has taken over {subject}."


class Interrupted(UploadError):
    text = "The upload was interrupted."
