"""The table `uploads`: the state of each object that was stored or is being stored.

uploads
    key (S)          s3://bucket/key
    state (S)        uploading | done
    size (N)         of the file, in bytes
    sha256 (S)       of the bytes read from disk, in the form of S3's `ChecksumSHA256`: base64 of
                     the SHA-256, or, for a file uploaded in parts, of the SHA-256 over the digests
                     of the parts, followed by `-` and their number; absent until `done`
    etag (S)         of the object, once `done`: it changes when the object is replaced
    uploadId (S)     of the multipart upload, from its creation until `done`
    lease (S)        the lock of the process that works on the row (`uploads#<uuid>`); absent if
                     none does
    fence (N)        the fencing token of that lock, likewise
    updatedAt (S)    the time of the last write; lets a later delete notice a newer write

A row that is `uploading` and names no lease is free: its upload was interrupted or failed. The next
run with the file continues from the stored parts. Files are cut by the rule in `uploads.contents`,
so equal files have equal checksums here.
"""

from dynamo import IntegerAttribute, TextAttribute
from dynamo.client.plain import PlainModel

UPLOADING = "uploading"
DONE = "done"


class UploadItem(PlainModel):
    class Meta:
        table_name = "uploads"

    url = TextAttribute(hash_key=True, attr_name="key")
    state = TextAttribute()
    size = IntegerAttribute(null=True)
    sha256 = TextAttribute(null=True)
    etag = TextAttribute(null=True)
    upload_id = TextAttribute(attr_name="uploadId", null=True)
    lease = TextAttribute(null=True)
    fence = IntegerAttribute(null=True)
    updated_at = TextAttribute(attr_name="updatedAt", null=True)
