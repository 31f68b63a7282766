"""The table `uploads`: what we know of each object that we stored, or are storing.

uploads
    key (S)          s3://bucket/key
    state (S)        uploading | done
    size (N)         of the file, in bytes
    sha256 (S)       what was read from disk, as S3 shows it (`ChecksumSHA256`): base64 of the
                     SHA-256, or, for a file that goes up in parts, of the SHA-256 over those of
                     its parts, and `-` and their count; absent while such a file is `uploading`
    etag (S)         of the object, once it is done: it changes when somebody replaces the object
    uploadId (S)     of our multipart upload, from when it is begun until it is done
    lease (S)        the lock of the process that works on it (`uploads#<uuid>`), only while it does
    fence (N)        that lock's fencing token, likewise
    updatedAt (S)    the time of day of the last write, for people to read, and for whoever forgets
                     a row to see that nobody wrote since

A row that is `uploading` and names no lease is free: its upload was interrupted or failed, and the
next run that has the file goes on from the parts that are there. Size and rule of the parts are
those of `uploads.sizes`, so equal files have equal checksums here.
"""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from dynamo.attributes import IntegerAttribute
from dynamo.models import Model

UPLOADING = "uploading"
DONE = "done"


class UploadItem(Model):
    """One object that is, or is to be, in S3."""

    class Meta:
        table_name = "uploads"

    url = UnicodeAttribute(hash_key=True, attr_name="key")
    state = UnicodeAttribute()
    size = IntegerAttribute(null=True)
    sha256 = UnicodeAttribute(null=True)
    etag = UnicodeAttribute(null=True)
    upload_id = UnicodeAttribute(attr_name="uploadId", null=True)
    lease = UnicodeAttribute(null=True)
    fence = IntegerAttribute(null=True)
    updated_at = UnicodeAttribute(attr_name="updatedAt", null=True)
