"""Access to S3: one client per process, and the requests that uploads and exports need.

botocore retries what fails temporarily (its standard mode: 503, a reset connection). Each request
here can safely be repeated, because an object is only stored where there is none.

Every function that sends a request raises `StorageFailed` or one of its subclasses:
`BucketMissing`, and those that the function names.

    StorageFailed
    ├── BucketMissing
    ├── ObjectExists
    ├── StorageBusy
    ├── PartChanged
    └── UploadGone
"""

from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import botocore
from botocore import xform_name
from botocore.compat import unquote_str
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from dynamo.client import endpoints
from dynamo.exceptions import ErrorWithValues
from dynamo.runtime.processes import PerProcess

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0

#: The most attempts of a request, retries included.
ATTEMPTS = 5

#: The connections that are kept open, enough for 32 workers. A worker of `uploadfiles` has two
#: threads, one for files and one for parts, and each sends one request at a time.
CONNECTIONS = 64

#: A body of up to this size is sent with its headers. For a larger one, botocore first asks whether
#: S3 accepts it (100 Continue). Otherwise, S3 may refuse it and close the connection while it is
#: being sent.
AT_ONCE_BYTES = 64 * 1024

DOWNLOAD_CHUNK_BYTES = 256 * 1024


class StorageFailed(ErrorWithValues):
    """`code` is S3's error code, or the name of botocore's exception.

    `retries` is the number of repetitions by botocore. An earlier attempt may have succeeded.
    """

    operation: str
    code: str
    message: str
    retries: int = 0

    def __str__(self) -> str:
        return f"S3 {self.operation} failed: {self.code}: {self.message}".rstrip(". ") + "."


class BucketMissing(StorageFailed):
    """The bucket does not exist."""


class ObjectExists(StorageFailed):
    """An object has the key already (If-None-Match, 412)."""


class StorageBusy(StorageFailed):
    """Another request for the key was in progress (409). Try again."""


class PartChanged(StorageFailed):
    """A stored part is not the one that was sent."""


class UploadGone(StorageFailed):
    """The multipart upload was completed or aborted."""


_ERRORS: dict[str, type[StorageFailed]] = {
    "ConditionalRequestConflict": StorageBusy,
    "InvalidPart": PartChanged,
    "NoSuchBucket": BucketMissing,
    "NoSuchUpload": UploadGone,
    "PreconditionFailed": ObjectExists,
}


@dataclass(frozen=True)
class Found:
    """An object as HeadObject shows it, with its stored checksums.

    `sha256` may be a checksum over parts; `crc32` is that of the whole object.
    """

    size: int
    etag: str
    sha256: str | None
    crc32: str | None


@dataclass(frozen=True)
class Part:
    number: int
    size: int
    etag: str
    sha256: str | None


def _make_client() -> Any:
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=CONNECTIONS,
        parameter_validation=False,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        # Otherwise, botocore builds the text again for each request.
        user_agent=f"Botocore/{botocore.__version__} django-on-dynamodb/uploads",
        # We pass the checksums as signed headers, so the signature covers the body.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"payload_signing_enabled": False},
    )
    return endpoints.client("s3", config)


#: The process's client for S3, made on first use.
client: PerProcess[Any] = PerProcess(_make_client)


@contextmanager
def _failures_of(operation: str) -> Iterator[None]:
    try:
        yield
    except BotoCoreError as error:
        raise StorageFailed(operation, type(error).__name__, str(error)) from error
    except ClientError as error:
        about = error.response["Error"]
        code, message = about.get("Code", "Unknown"), about.get("Message", "")
        retries = error.response["ResponseMetadata"].get("RetryAttempts", 0)
        kind = _ERRORS.get(code, StorageFailed)
        if operation == "CompleteMultipartUpload" and code in {"BadDigest", "InvalidRequest"}:
            kind = PartChanged
        raise kind(operation, code, message, retries=retries) from error


def _call(operation: str, bucket: str, **request: object) -> dict[str, Any]:
    with _failures_of(operation):
        answer: dict[str, Any] = getattr(client(), xform_name(operation))(Bucket=bucket, **request)
    return answer


def _pages(operation: str, bucket: str, **request: object) -> Iterator[dict[str, Any]]:
    with _failures_of(operation):
        paginator = client().get_paginator(xform_name(operation))
        yield from paginator.paginate(Bucket=bucket, **request)


def check_bucket(bucket: str, prefix: str) -> None:
    """Check that the bucket exists and can be listed below `prefix`. Costs 1 request."""
    # HeadBucket is not used, because its refusal has no message.
    _call("ListObjectsV2", bucket, Prefix=prefix, MaxKeys=1)


def list_objects(bucket: str, prefix: str) -> Iterator[list[tuple[str, int, str]]]:
    """The key, size and ETag of all objects whose keys begin with `prefix`, page by page.

    Costs 1 request per 1,000 objects.
    """
    # botocore requests URL-encoded keys, because XML cannot contain every character, and decodes
    # them.
    for answer in _pages("ListObjectsV2", bucket, Prefix=prefix):
        found = answer.get("Contents", [])
        yield [(item["Key"], item["Size"], _bare(item["ETag"])) for item in found]


def put(bucket: str, key: str, body: bytes, sha256: str, content_type: str = "") -> str:
    """Store an object if the key is free. Returns its ETag.

    Raises:
        ObjectExists: the key is taken, perhaps by an earlier attempt if `retries` is not 0.
        StorageBusy: another request for the key was in progress.
    """
    # botocore wraps bytes in a file, and asks (100 Continue) for each file, however small.
    sent = bytearray(body) if len(body) <= AT_ONCE_BYTES else body
    request = {"ChecksumSHA256": sha256, "IfNoneMatch": "*", **_typed(content_type)}
    answer = _call("PutObject", bucket, Key=key, Body=sent, **request)
    return _bare(answer["ETag"])


def head(bucket: str, key: str) -> Found | None:
    """The object; None if it or the bucket does not exist, because S3's answer is the same."""
    try:
        answer = _call("HeadObject", bucket, Key=key, ChecksumMode="ENABLED")
    except StorageFailed as error:
        if error.code in {"404", "NoSuchKey", "NotFound"}:
            return None
        raise
    whole = answer.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT"
    return Found(
        size=answer["ContentLength"],
        etag=_bare(answer["ETag"]),
        sha256=answer.get("ChecksumSHA256"),
        crc32=answer.get("ChecksumCRC32") if whole else None,
    )


def part_sizes(bucket: str, key: str) -> list[int]:
    """The sizes of the parts that an object was uploaded in; empty if S3 does not list them."""
    sizes: list[int] = []
    request: dict[str, Any] = {"Key": key, "ObjectAttributes": ["ObjectParts"]}
    while True:
        answer = _call("GetObjectAttributes", bucket, **request).get("ObjectParts", {})
        sizes += [part["Size"] for part in answer.get("Parts", [])]
        if not answer.get("IsTruncated"):
            return sizes
        request["PartNumberMarker"] = answer["NextPartNumberMarker"]


def download(bucket: str, key: str, span: tuple[int, int] | None = None) -> Iterator[bytes]:
    """The bytes of an object, or of a part of it, given by offset and length."""
    request = {"Key": key}
    if span is not None:
        request["Range"] = f"bytes={span[0]}-{sum(span) - 1}"
    body = _call("GetObject", bucket, **request)["Body"]
    with _failures_of("GetObject"):
        yield from body.iter_chunks(DOWNLOAD_CHUNK_BYTES)


def create_upload(bucket: str, key: str, content_type: str = "") -> tuple[str, bool]:
    """Start a multipart upload. Returns its id, and whether retries may have started others too."""
    checksums = {"ChecksumAlgorithm": "SHA256", "ChecksumType": "COMPOSITE"}
    answer = _call("CreateMultipartUpload", bucket, Key=key, **checksums, **_typed(content_type))
    return answer["UploadId"], answer["ResponseMetadata"].get("RetryAttempts", 0) > 0


def send_part(bucket: str, key: str, upload_id: str, number: int, body: Sized, sha256: str) -> Part:
    """Store a part, replacing one with the same number. `body` is bytes, or has `len` and `read`.

    Raises:
        UploadGone: the upload was completed or aborted.
    """
    part = {"UploadId": upload_id, "PartNumber": number, "ChecksumSHA256": sha256}
    answer = _call("UploadPart", bucket, Key=key, Body=body, ContentLength=len(body), **part)
    return Part(number, len(body), _bare(answer["ETag"]), sha256)


def list_parts(bucket: str, key: str, upload_id: str) -> dict[int, Part]:
    """The stored parts of an upload by their numbers.

    Raises:
        UploadGone: the upload was completed or aborted.
    """
    pages = _pages("ListParts", bucket, Key=key, UploadId=upload_id)
    parts = [
        Part(part["PartNumber"], part["Size"], _bare(part["ETag"]), part.get("ChecksumSHA256"))
        for page in pages
        for part in page.get("Parts", [])
    ]
    return {part.number: part for part in parts}


def complete_upload(bucket: str, key: str, upload_id: str, sent: Sequence[Part]) -> str:
    """Make the object from its parts if the key is free. Returns its ETag.

    Raises:
        ObjectExists, StorageBusy: as in `put`.
        PartChanged: a stored part is not the one in `sent`.
        UploadGone: the upload was completed (perhaps by an earlier attempt) or aborted.
    """
    parts = [
        {"PartNumber": part.number, "ETag": part.etag, "ChecksumSHA256": part.sha256}
        for part in sent
    ]
    upload = {"UploadId": upload_id, "MultipartUpload": {"Parts": parts}}
    answer = _call("CompleteMultipartUpload", bucket, Key=key, IfNoneMatch="*", **upload)
    return _bare(answer["ETag"])


def abort_upload(bucket: str, key: str, upload_id: str) -> None:
    """Remove a multipart upload and its parts, if it exists."""
    with suppress(UploadGone):
        _call("AbortMultipartUpload", bucket, Key=key, UploadId=upload_id)


def list_uploads(bucket: str, key: str) -> list[str]:
    """The ids of all multipart uploads of exactly this key."""
    ids: list[str] = []
    # For this operation botocore neither requests nor decodes URL-encoded keys.
    request = {"Prefix": key, "EncodingType": "url"}
    while True:
        answer = _call("ListMultipartUploads", bucket, **request)
        # Some other implementations of S3 do not encode.
        decoded = unquote_str if answer.get("EncodingType") == "url" else str
        found = [
            (decoded(upload["Key"]), upload["UploadId"]) for upload in answer.get("Uploads", [])
        ]
        ids += [upload_id for its_key, upload_id in found if its_key == key]
        # Longer keys with this prefix come after it.
        if not answer.get("IsTruncated") or any(its_key != key for its_key, _id in found):
            return ids
        request["KeyMarker"] = decoded(answer["NextKeyMarker"])
        request["UploadIdMarker"] = answer["NextUploadIdMarker"]


def _typed(content_type: str) -> dict[str, str]:
    return {"ContentType": content_type} if content_type else {}


def _bare(etag: str) -> str:
    return etag.strip('"')
