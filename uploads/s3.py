"""The one way to S3: a shared client, and the few calls that uploads need, in our own errors.

botocore repeats what fails in passing (its standard mode: 503, a reset connection); each call here
may be carried out twice without harm, as an object is only ever put where none is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import boto3
from botocore import xform_name
from botocore.compat import unquote_str
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings

from dynamo import addressing, credentials
from dynamo.credentials import ProcessCredentials
from dynamo.perprocess import PerProcess
from uploads.exceptions import (
    BucketMissing,
    ObjectExists,
    PartChanged,
    StorageBusy,
    StorageFailed,
    UploadGone,
)
from uploads.reading import CHUNK_BYTES, Span

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0

#: How often a request is sent at most.
ATTEMPTS = 5

#: Connections that are kept. A worker of `uploadfiles` has two threads, one for files and one for
#: parts, and each sends one request at a time: they suffice for 32 workers.
CONNECTIONS = 64

#: A body of up to this size goes with its headers. Of a larger one botocore first asks whether it
#: is wanted (100 Continue): S3 may refuse it, and close the connection while it is being sent.
AT_ONCE_BYTES = 64 * 1024

_ERRORS: dict[str, type[StorageFailed]] = {
    "ConditionalRequestConflict": StorageBusy,
    "InvalidPart": PartChanged,
    "NoSuchBucket": BucketMissing,
    "NoSuchUpload": UploadGone,
    "PreconditionFailed": ObjectExists,
}


@dataclass(frozen=True)
class Found:
    """An object as HeadObject shows it; the checksums that S3 has of it, else None.

    `sha256` may be one over parts; the others are of the whole object.
    """

    size: int
    etag: str
    sha256: str | None
    sha1: str | None
    crc32: str | None


@dataclass(frozen=True)
class Part:
    """A part of a multipart upload, as S3 has it."""

    number: int
    size: int
    etag: str
    sha256: str | None


def client() -> Any:
    """The process's client for S3, made on first use."""
    return _client()


def reset() -> None:
    """Forget the client; the next request makes a new one (by other settings)."""
    _client.reset()
    credentials.reset()


def _make_client() -> Any:
    is_local = addressing.is_loopback(addressing.configured_endpoint("s3"))
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=CONNECTIONS,
        parameter_validation=False,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        # botocore puts its own together anew for each request.
        user_agent=f"Boto3/{boto3.__version__} django-on-dynamodb/uploads",
        # We bring the checksums ourselves; they are among the signed headers, and so is the body.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={
            "payload_signing_enabled": False,
            # A bucket is no host below `localhost`.
            "addressing_style": "path" if is_local else "auto",
        },
    )
    if is_local:
        signing = credentials.of_engine() or ProcessCredentials(credentials.LOCAL)
    else:
        signing = credentials.of_process()
    # Its stubs have an overload for each service.
    session: Any = addressing.session(signing, settings.AWS_REGION)
    return session.client("s3", settings.AWS_REGION, config=config)


_client: PerProcess[Any] = PerProcess(_make_client)


def call(operation: str, **request: Any) -> dict[str, Any]:
    """The answer to one request, `operation` by the API's name. Raises StorageFailed."""
    try:
        answer: dict[str, Any] = getattr(client(), xform_name(operation))(**request)
    except (BotoCoreError, ClientError) as error:
        raise _failed(operation, error) from error
    return answer


def _failed(operation: str, error: BotoCoreError | ClientError) -> StorageFailed:
    if not isinstance(error, ClientError):
        return StorageFailed(operation, type(error).__name__, str(error))
    answer: dict[str, Any] = error.response  # type: ignore[assignment]  # more than its type says
    code = answer.get("Error", {}).get("Code", "Unknown")
    message = answer.get("Error", {}).get("Message", "")
    retries = answer.get("ResponseMetadata", {}).get("RetryAttempts", 0)
    kind = _ERRORS.get(code, StorageFailed)
    if operation == "CompleteMultipartUpload" and code in {"BadDigest", "InvalidRequest"}:
        kind = PartChanged
    return kind(operation, code, message, retries=retries)


def put(bucket: str, key: str, body: bytes, sha256: str) -> str:
    """Store a whole object where there is none; its ETag.

    Raises:
        ObjectExists: there is one, which may be ours where `retries` is not 0.
        StorageBusy: another was being put there at the same time.
        StorageFailed: and so do all functions here.
    """
    answer = call(
        "PutObject",
        Bucket=bucket,
        Key=key,
        # Of bytes botocore makes a file, and asks for each file, however small.
        Body=bytearray(body) if len(body) <= AT_ONCE_BYTES else body,
        ChecksumSHA256=sha256,
        IfNoneMatch="*",
    )
    return _bare(answer["ETag"])


def head(bucket: str, key: str) -> Found | None:
    """The object as it is; None where there is none (or no such bucket: the answer is the same)."""
    try:
        answer = call("HeadObject", Bucket=bucket, Key=key, ChecksumMode="ENABLED")
    except StorageFailed as error:
        if error.code in {"404", "NoSuchKey", "NotFound"}:
            return None
        raise
    whole = answer.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT"
    return Found(
        size=answer["ContentLength"],
        etag=_bare(answer["ETag"]),
        sha256=answer.get("ChecksumSHA256"),
        sha1=answer.get("ChecksumSHA1") if whole else None,
        crc32=answer.get("ChecksumCRC32") if whole else None,
    )


def part_sizes(bucket: str, key: str) -> list[int]:
    """The sizes of the parts from which an object was put together; empty where S3 has no list."""
    sizes: list[int] = []
    marker = 0
    while True:
        answer = call(
            "GetObjectAttributes",
            Bucket=bucket,
            Key=key,
            ObjectAttributes=["ObjectParts"],
            PartNumberMarker=marker,
        ).get("ObjectParts", {})
        sizes += [part["Size"] for part in answer.get("Parts", [])]
        if not answer.get("IsTruncated"):
            return sizes
        marker = answer["NextPartNumberMarker"]


def download(bucket: str, key: str) -> Iterator[bytes]:
    """The object's bytes."""
    body = call("GetObject", Bucket=bucket, Key=key)["Body"]
    try:
        yield from body.iter_chunks(CHUNK_BYTES)
    except BotoCoreError as error:
        raise _failed("GetObject", error) from error


def begin(bucket: str, key: str) -> tuple[str, bool]:
    """Begin a multipart upload; its id, and whether it took repetitions: they may have left others.

    Raises:
        StorageFailed: it may have been begun all the same.
    """
    answer = call(
        "CreateMultipartUpload",
        Bucket=bucket,
        Key=key,
        ChecksumAlgorithm="SHA256",
        ChecksumType="COMPOSITE",
    )
    upload_id: str = answer["UploadId"]
    return upload_id, answer["ResponseMetadata"].get("RetryAttempts", 0) > 0


def send_part(bucket: str, key: str, upload_id: str, number: int, body: Span, sha256: str) -> Part:
    """Store a part, in place of what has its number.

    Raises:
        UploadGone: the upload was completed or aborted.
    """
    answer = call(
        "UploadPart",
        Bucket=bucket,
        Key=key,
        UploadId=upload_id,
        PartNumber=number,
        Body=body,
        ContentLength=len(body),
        ChecksumSHA256=sha256,
    )
    return Part(number, len(body), _bare(answer["ETag"]), sha256)


def parts(bucket: str, key: str, upload_id: str) -> dict[int, Part]:
    """The parts that are there, by their numbers.

    Raises:
        UploadGone: the upload was completed or aborted.
    """
    there: dict[int, Part] = {}
    marker = 0
    while True:
        answer = call(
            "ListParts", Bucket=bucket, Key=key, UploadId=upload_id, PartNumberMarker=marker
        )
        for part in answer.get("Parts", []):
            number = part["PartNumber"]
            there[number] = Part(
                number, part["Size"], _bare(part["ETag"]), part.get("ChecksumSHA256")
            )
        if not answer.get("IsTruncated"):
            return there
        marker = answer["NextPartNumberMarker"]


def complete(bucket: str, key: str, upload_id: str, sent: Sequence[Part]) -> str:
    """Put the object together from the parts, where there is none; its ETag.

    Raises:
        ObjectExists, StorageBusy: as `put`.
        PartChanged: a part is another than the one in `sent`.
        UploadGone: the upload was completed (by us, perhaps) or aborted.
    """
    named = [
        {"PartNumber": part.number, "ETag": part.etag, "ChecksumSHA256": part.sha256}
        for part in sent
    ]
    answer = call(
        "CompleteMultipartUpload",
        Bucket=bucket,
        Key=key,
        UploadId=upload_id,
        MultipartUpload={"Parts": named},
        IfNoneMatch="*",
    )
    return _bare(answer["ETag"])


def abort(bucket: str, key: str, upload_id: str) -> None:
    """Forget a multipart upload and its parts; one that is gone is fine."""
    try:
        call("AbortMultipartUpload", Bucket=bucket, Key=key, UploadId=upload_id)
    except UploadGone:
        return


def uploads_of(bucket: str, key: str) -> list[str]:
    """The ids of all multipart uploads of exactly this key."""
    ids: list[str] = []
    # XML has no sign for some signs of keys; boto3 asks for them encoded where it lists objects.
    request: dict[str, Any] = {"Bucket": bucket, "Prefix": key, "EncodingType": "url"}
    while True:
        answer = call("ListMultipartUploads", **request)
        # Some other implementations do not encode.
        plain = unquote_str if answer.get("EncodingType") == "url" else str
        found = [(plain(each["Key"]), each["UploadId"]) for each in answer.get("Uploads", [])]
        ids += [upload_id for its_key, upload_id in found if its_key == key]
        # Longer keys come after this one.
        if not answer.get("IsTruncated") or any(its_key != key for its_key, _id in found):
            return ids
        request["KeyMarker"] = plain(answer["NextKeyMarker"])
        request["UploadIdMarker"] = answer["NextUploadIdMarker"]


def _bare(etag: str) -> str:
    return etag.strip('"')
